"""How far a student is from its teacher, and what a training lessens of it."""

import pytest
import torch
from miniature_backbones import CASES

from mmlinattn.adaptation import (
    aligned_pairs,
    attention_errors,
    carry_weights,
    feature_errors,
    prepare_alignment,
    student_config,
)
from mmlinattn.adaptation.errors import relative_error
from mmlinattn.models import SoftmaxAttention
from mmlinattn.models.attentions.base import BaseAttention
from mmlinattn.parts import build_model
from mmlinattn.utils.log import quiet

SWIN, SOFTPP, VIT, CSWIN = (
    CASES[f'{name}']
    for name in (
        *('SwinTransformer', 'SOFTPlusPlus', 'VisionTransformer'),
        'CSWinTransformer',
    )
)
IMAGES = (2, 3, 64, 64)


def pair_of(teacher, attention, **options):
    """A teacher with weights that matter, its student, and their pairs."""
    cfg = student_config({**teacher, **options}, attention)
    models = build_model({**teacher, **options}), build_model(cfg)
    with quiet():
        for model in models:
            model.init_weights()
    for parameter in models[0].parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    carry_weights(*models)
    prepare_alignment(*models)
    return (*models, aligned_pairs(*models))


def test_relative_error():
    theirs = torch.tensor([3.0, 4.0])
    assert relative_error(theirs, theirs) == 0
    assert relative_error(torch.zeros(2), theirs) == 1
    assert relative_error(torch.tensor([3.0, 1.0]), theirs) == pytest.approx(9 / 25)
    assert relative_error(theirs, torch.zeros(2)).isfinite()
    assert relative_error(theirs.half() * 100, theirs.half()).dtype == torch.float32


@pytest.mark.parametrize(
    'teacher, attention',
    [
        (SWIN, 'ELFATT'),
        (SOFTPP, 'LinearSOFTPlusPlus'),
        (VIT, 'EfficientAttention'),
        (CSWIN, 'inline'),  # which reads the block's input before its norm
    ],
)
def test_errors_are_those_of_the_attentions_alone(teacher, attention):
    """Of each block: what its student's attention makes of the teacher's tokens."""
    teacher, student, pairs = pair_of(teacher, attention)
    seen = {}
    for pair in pairs:

        def keep(attn, args, out, name=pair.label):
            seen[name] = *args, out

        pair.teacher.attn.register_forward_hook(keep)
    errors = attention_errors(teacher, pairs, torch.randn(IMAGES))
    assert [*errors] == [pair.label for pair in pairs]
    student.eval()
    for pair in pairs:
        x, hw_shape, theirs = seen[pair.label]
        if getattr(pair.student, 'reads_shortcut', False):
            assert errors[pair.label] > 0
            continue
        with torch.no_grad():
            ours = pair.student(x, hw_shape)
        error = (ours - theirs).square().mean() / theirs.square().mean()
        torch.testing.assert_close(errors[pair.label].detach(), error)


def test_shortcuts_are_the_block_input():
    """Of an attention that reads them, the error is what the block would give it."""
    teacher, _, pairs = pair_of(CSWIN, 'inline')
    images = torch.randn(IMAGES)
    _, block, attention = pairs[0]
    given = {}
    block.register_forward_pre_hook(lambda block, args: given.update(x=args[0]))
    errors = attention_errors(teacher, pairs, images)
    with torch.no_grad():
        tokens, shape = block.norm1(given['x']), (16, 16)
        ours = attention(tokens, shape, shortcut=given['x'])
        theirs = block.attn(tokens, shape)
    torch.testing.assert_close(
        errors[pairs[0].label].detach(), relative_error(ours, theirs)
    )


@pytest.mark.parametrize(
    'cfg', [VIT, dict(SOFTPP, attention=dict(type='SoftmaxAttention'))]
)
def test_its_own_attention_has_no_error(cfg):
    """A student of the teacher's own attention, as another class, agrees at once, also
    in training mode, with BatchNorm."""

    class Renamed(SoftmaxAttention):
        pass

    teacher = build_model(cfg)
    student = build_model(dict(cfg, attention=dict(type=Renamed)))
    teacher.init_weights()
    assert carry_weights(teacher, student) == []
    prepare_alignment(teacher, student)
    pairs, images = aligned_pairs(teacher, student), torch.randn(IMAGES)
    images[:, :, -16:] = 0  # no padding, though a backbone may leave such rows out
    assert len(pairs) == 4
    errors = attention_errors(teacher, pairs, images)
    assert all(error == 0 for error in errors.values())
    errors = feature_errors(teacher, student.train(), images)
    assert errors['3'] == 0 and not any(errors.values())


@pytest.mark.parametrize('rate', [0.0, 0.003])
def test_alignment_learns_attentions_and_nothing_else(rate):
    teacher, student, pairs = pair_of(SWIN, 'ELFATT')
    images = torch.randn(IMAGES)
    before = {key: entry.clone() for key, entry in student.state_dict().items()}
    of_teacher = {key: entry.clone() for key, entry in teacher.state_dict().items()}
    optimizer = torch.optim.Adam(student.parameters(), rate)
    first = attention_errors(teacher, pairs, images)
    for _ in range(6):
        errors = attention_errors(teacher, pairs, images)
        optimizer.zero_grad()
        sum(errors.values()).backward()
        optimizer.step()
    last = attention_errors(teacher, pairs, images)
    assert all((last[x] < first[x]) == bool(rate) for x in first)
    after = student.state_dict()
    changed = {key for key in before if not torch.equal(before[key], after[key])}
    assert bool(changed) == bool(rate)
    assert all('.attn.' in key for key in changed)
    assert all(
        torch.equal(x, teacher.state_dict()[key]) for key, x in of_teacher.items()
    )
    assert not any(parameter.requires_grad for parameter in teacher.parameters())


def test_features_learn_in_all_of_the_student():
    teacher, student, _ = pair_of(SOFTPP, 'ELFATT', out_indices=(1, 3))
    images = torch.randn(IMAGES)
    errors = feature_errors(teacher, student.train(), images)
    assert [*errors] == ['1', '3']
    sum(errors.values()).backward()
    assert all(p.grad is not None for p in student.parameters())


@pytest.mark.parametrize('out_type', ['avg_featmap', 'cls_token'])
def test_classifiers_are_compared_at_each_place(out_type):
    """Not only in their means or class tokens, which they return."""
    options = dict(out_type=out_type, drop_path_rate=0.5, drop_rate=0.5)
    teacher, student, pairs = pair_of(SOFTPP, 'ELFATT', **options)
    images = torch.randn(IMAGES)
    images[:, :, -16:] = 0  # which is no padding here
    assert teacher(images)[0].shape == (2, 1 + 4, 32)
    student.train()
    first, second = (feature_errors(teacher, student, images) for _ in range(2))
    assert torch.equal(first['3'], second['3'])
    errors = attention_errors(teacher, pairs, images)
    assert not any(
        isinstance(module, BaseAttention) and module.dropout_p
        for module in student.modules()
    )
    assert len(errors) == len(pairs)
