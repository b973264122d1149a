"""Which attentions of two backbones differ, and which backbones are refused."""

import pytest
from miniature_backbones import CASES, KINDS, UNSCALED_BACKBONES

from mmlinattn.adaptation import aligned_pairs, student_config
from mmlinattn.parts import build_model

TEACHERS = [
    name for name in UNSCALED_BACKBONES if name in KINDS and name != 'EfficientViT'
]
SWIN, SOFTPP, VIT = (
    CASES[name] for name in ('SwinTransformer', 'SOFTPlusPlus', 'VisionTransformer')
)


def pairs_of(teacher, *args, **options):
    """Names of the blocks in which a teacher's student differs."""
    student = student_config(teacher, *args, **options)
    models = build_model(teacher), build_model(student)
    return [pair.name for pair in aligned_pairs(*models)]


@pytest.mark.parametrize('name', TEACHERS)
def test_the_same_backbone_has_no_pairs(name):
    """Whatever its attentions keep of their options."""
    teacher, student = build_model(CASES[name]), build_model(CASES[name])
    with pytest.raises(ValueError, match='have the same attentions'):
        aligned_pairs(teacher, student)


@pytest.mark.parametrize(
    'teacher, attention, number',
    [
        (SWIN, 'ELFATT', 5),
        (SWIN, 'elfatt', 5),  # a pattern, whose softmax attention has LePE
        (SWIN, ['local', 'local', 'ELFATT', 'ELFATT'], 2),
        (SOFTPP, 'ELFATT', 4),
        (SOFTPP, 'LinearSOFTPlusPlus', 4),
        (VIT, 'EfficientAttention', 4),
        (CASES['CSWinTransformer'], 'inline', 3),  # in its first two stages
        (CASES['MLLA'], 'EfficientAttention', 5),
    ],
)
def test_pairs(teacher, attention, number):
    names = pairs_of(teacher, attention)
    assert len(names) == number and all('blocks.' in name for name in names)


def test_options_alone_are_a_difference():
    teacher = dict(SWIN, attention=dict(type='ELFATT', block_size=49))
    student = dict(SWIN, attention=dict(type='ELFATT', block_size=16))
    pairs = aligned_pairs(build_model(teacher), build_model(student))
    assert len(pairs) == 5


@pytest.mark.parametrize(
    'change, text',
    [
        (dict(arch=dict(SWIN['arch'], depths=[2, 2, 1, 1])), 'stages.1.blocks.1'),
        (dict(attention='elfatt'), r'stages.0.embedding.layer.0.weight \(8, 3, 4, 4\)'),
        (dict(arch=dict(SWIN['arch'], embed_dims=16)), 'entries besides their'),
        (dict(attn_scale=True), None),
        (dict(feat_scale=True), 'feat_scale.dc_scale absent in the teacher'),
    ],
)
def test_other_backbones_are_refused(change, text):
    teacher, student = build_model(SWIN), build_model({**SWIN, **change})
    if text is None:
        assert len(aligned_pairs(teacher, student)) == 5
        return
    with pytest.raises(ValueError, match=text):
        aligned_pairs(teacher, student)


def test_a_class_token_needs_an_attention_that_takes_it():
    with pytest.raises(ValueError, match='take one: ') as caught:
        pairs_of(VIT, 'ELFATT')
    line = str(caught.value)
    assert 'blocks.0.attn has a class token, which ELFATT does not take' in line
    fitting = line.partition('take one: ')[2].split(', ')
    assert {'EfficientAttention', 'TTTAttention'} <= {*fitting}
    assert not {'ELFATT', 'LinformerAttention', 'ClassAttention'} & {*fitting}
    for name in fitting:
        assert len(pairs_of(VIT, name)) == 4


def test_a_backbone_without_such_blocks():
    model = build_model(CASES['EfficientViT'])
    with pytest.raises(ValueError, match='EfficientViT has no blocks.*SwinTransformer'):
        aligned_pairs(model, build_model(CASES['EfficientViT']))
