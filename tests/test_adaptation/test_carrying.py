"""What a student starts with."""

import re

import pytest
import torch
from miniature_backbones import CASES

from mmlinattn.adaptation import (
    aligned_pairs,
    attention_errors,
    carry_weights,
    prepare_alignment,
    student_config,
)
from mmlinattn.adaptation.carrying import split_projections
from mmlinattn.parts import CLASSES, build_model

SWIN, SOFTPP, VIT = (
    CASES[name] for name in ('SwinTransformer', 'SOFTPlusPlus', 'VisionTransformer')
)


def carried(teacher, attention, options=None):
    """Teacher, student, and what is new in it."""
    cfg = student_config(teacher, attention, options)
    models = build_model(teacher), build_model(cfg)
    return (*models, carry_weights(*models))


def queries_keys_values(attention, tokens):
    """What an attention multiplies of tokens, before its product."""
    seen = []
    attend = attention.attend
    attention.attend = lambda q, k, v, *args: (
        seen.extend((q, k, v)) or attend(q, k, v, *args)
    )
    attention(tokens, (8, 8))
    return seen


@pytest.mark.parametrize(
    'name, options',
    [
        ('SoftmaxAttention', dict(shared_qk=False)),
        ('ELFATT', {}),
        ('AgentAttention', {}),
        ('InLineAttention', {}),
        ('TTTAttention', dict(rotary=False)),
        ('PolaFormerAttention', {}),  # with a gate, whose rows are new
        ('LinformerAttention', dict(sr_ratio=1)),
        ('MultiScaleLinearAttention', dict(scales=(), qkv_bias=True)),
    ],
)
def test_projections(name, options):
    """The student's attention multiplies the queries, keys and values of the teacher's,
    however its layers stack them."""
    teacher, student, new = carried(SWIN, name, options)
    attentions = [model.stages[2].blocks[0].attn for model in (teacher, student)]
    tokens = torch.randn(1, 64, 32)
    wanted = attentions[0].project(tokens)
    for ours, theirs in zip(queries_keys_values(attentions[1], tokens), wanted):
        torch.testing.assert_close(ours, theirs)
    # the student's last layer may join more than the channels
    assert all('.attn.' in key and 'qkv' not in key for key in new)


@pytest.mark.parametrize('name', ['ELFATT', 'LinformerAttention'])
def test_one_projection_for_queries_and_keys(name):
    """SOFT's, in the place of both."""
    teacher, student, _ = carried(SOFTPP, name)
    theirs, ours = (model.stages[0].blocks[0].attn for model in (teacher, student))
    parts = split_projections(ours.state_dict(), 'weight', 8)
    assert torch.equal(parts['q'], theirs.q.weight)
    assert torch.equal(parts['k'], theirs.q.weight)
    assert torch.equal(parts['v'], theirs.v.weight)


def test_a_stack_of_two():
    """Of an attention whose queries are the keys; and back."""
    for names in (
        ('WindowAttention', 'GaussianAttention'),
        ('GaussianAttention', 'ELFATT'),
    ):
        teacher = dict(SWIN, attention=dict(type=names[0]))
        teacher, student, _ = carried(teacher, names[1])
        theirs, ours = (
            split_projections(model.stages[0].blocks[0].attn.state_dict(), 'weight', 8)
            for model in (teacher, student)
        )
        assert torch.equal(ours['q'], theirs['q'])
        assert torch.equal(ours['k'], theirs['q'])
        assert torch.equal(ours['v'], theirs['v'])


def test_softmax_to_softmax_free():
    teacher, student, _ = carried(SWIN, 'SoftmaxFreeAttention', dict(sampling_ratio=2))
    theirs, ours = (model.stages[0].blocks[0].attn for model in (teacher, student))
    q, _, v = theirs.qkv.weight.split(8)
    assert torch.equal(ours.q.weight, q) and torch.equal(ours.v.weight, v)


def test_lepe_is_carried():
    """Its whole convolution becomes the halves of ELFATT's."""
    teacher = dict(CASES['CSWinTransformer'], attention='global')
    teacher, student, new = carried(teacher, 'ELFATT')
    theirs, ours = (model.stages[0].blocks[0].attn for model in (teacher, student))
    halves = ours.global_lepe.weight, ours.local_lepe.weight
    assert torch.equal(torch.cat(halves), theirs.lepe.weight)
    assert new == []


REFUSED = (
    'has a class token, which|have the same attentions|num_heads must be even|no att'
)


@pytest.mark.parametrize('teacher', [SWIN, SOFTPP, VIT], ids=['swin', 'soft', 'vit'])
@pytest.mark.parametrize(
    'name', [x for x in CLASSES if x.endswith('Attention') or x == 'ELFATT']
)
def test_everything_besides_attentions_is_carried(teacher, name):
    """Into every attention that the backbone takes; it runs, and the teacher stays."""
    try:
        models = build_model(teacher), build_model(student_config(teacher, name))
        before = {key: x.clone() for key, x in models[0].state_dict().items()}
        new = carry_weights(*models)
    except ValueError as error:
        if not re.search(REFUSED, str(error)):
            raise
        return
    after = models[1].state_dict()
    for key, entry in before.items():
        assert torch.equal(entry, models[0].state_dict()[key])
        if '.attn.' not in key:
            assert torch.equal(entry, after[key]), key
    assert {key for key in after if '.attn.' not in key}.isdisjoint(new)
    prepare_alignment(*models)
    pairs = aligned_pairs(*models)
    errors = attention_errors(models[0], pairs, torch.randn(1, 3, 64, 96))
    assert all(error.isfinite() for error in errors.values())
