"""Swin and CSWin with the papers' attentions."""

import pytest
import torch
from mmengine.registry import MODELS
from torch import nn

from mmlinattn.models import (
    CSWinTransformer,
    PatchMerging,
    SwinTransformer,
    WindowAttention,
)

pytestmark = pytest.mark.modern_full

ARCH = dict(embed_dims=8, depths=[1, 2, 4, 1], num_heads=[2, 2, 4, 4])
BOTH = pytest.mark.parametrize('family', (SwinTransformer, CSWinTransformer))


def from_config(family, **options):
    """A model from the registry of every mm config."""
    return MODELS.build(dict(type=f'mmlinattn.{family.__name__}', arch=ARCH, **options))


def attentions(model):
    """The attentions of each stage."""
    return [[block.attn for block in stage.blocks] for stage in model.stages]


def types(model):
    """Their types, joined where all blocks of a stage have the same."""
    names = [[type(attn).__name__ for attn in stage] for stage in attentions(model)]
    return [stage if len({*stage}) > 1 else stage[0] for stage in names]


def is_overlapping(model):
    """True for the embeddings of CSWin, False for Swin's."""
    stem, *merging = (stage.embedding for stage in model.stages)
    if all(isinstance(e, PatchMerging) for e in merging):
        return False
    kernels = [embedding.layer[0].kernel_size for embedding in (stem, *merging)]
    assert kernels == [(7, 7), (3, 3), (3, 3), (3, 3)]
    return True


def alternating(linear):
    """The arrangement of the ELFATT paper, in the depths of ARCH."""
    softmax = 'SoftmaxAttention'
    return [linear, linear, [softmax, linear] * 2, softmax]


SOFTMAX = 'SoftmaxAttention'
# of the others, the outputs of official code tell
EXPECTED = {
    'global': [SOFTMAX] * 4,
    'elfatt': alternating('ELFATT'),
    'efficient': alternating('EfficientAttention'),
}


@pytest.mark.parametrize(
    'family, name',
    [(x, name) for x in (SwinTransformer, CSWinTransformer) for name in x.presets],
)
def test_presets(family, name):
    model = family(ARCH, attention=name, out_indices=(0, 3)).eval()
    if name in EXPECTED:
        assert types(model) == EXPECTED[name]
    assert is_overlapping(model) == (family is CSWinTransformer or name == 'elfatt')
    first, last = model(torch.randn(1, 3, 45, 70))
    assert first.shape == (1, 8, 12, 18)
    assert last.shape == (1, 64, 2, 3)
    # of other depths
    arch = dict(embed_dims=8, depths=[2, 1], num_heads=[2, 2])
    assert len(family(arch, attention=name)(torch.randn(1, 3, 64, 64))) == 2


def test_resized_table_of_windows():
    """It is resized like in Swin's code: bicubic, over differences of positions."""
    small, large = (WindowAttention(8, 2, window_size=side) for side in (2, 3))
    large.load_state_dict(small.state_dict())
    maps = small.relative_position_bias_table.detach().T.view(1, 2, 3, 3)
    expected = nn.functional.interpolate(maps, (5, 5), mode='bicubic')
    assert large.relative_position_bias_table.equal(expected.view(2, 25).T)
    table = dict(relative_position_bias_table=torch.zeros(9, 3))
    with pytest.raises(RuntimeError, match='relative_position_bias_table'):
        large.load_state_dict({**small.state_dict(), **table})


@BOTH
def test_options_of_elfatt(family):
    """The variants of the paper's ablations, each by one word of config."""
    options = dict(block_sizes=(49, 49, 196), split_ratio=0.25, lepe=False)
    model = from_config(family, attention='elfatt', **options)
    stages = attentions(model)
    linear = [stages[0][0], stages[1][1], stages[2][1]]
    assert [attn.block_size for attn in linear] == [49, 49, 196]
    assert linear[0].half_dims == (2, 6)
    assert not any('lepe' in key for key in model.state_dict())
    default = from_config(family, attention='elfatt', block_sizes=None)
    assert any('lepe' in key for key in default.state_dict())
    assert attentions(default)[0][0].block_size == 196
    assert attentions(default)[0][0].half_dims == (4, 4)


LINEAR = dict(type='ELFATT', block_size=49)


@BOTH
def test_lists_of_attentions(family):
    """Configs, patterns, words, and None, which is the own one, change only these."""
    own, softmax = types(family(ARCH)), dict(type=SOFTMAX)
    for attention, expected in (
        (LINEAR, ['ELFATT'] * 4),
        ([softmax, LINEAR, LINEAR, LINEAR], [SOFTMAX] + ['ELFATT'] * 3),
        ([LINEAR, LINEAR, [softmax, LINEAR], softmax], alternating('ELFATT')),
        ([None] * 4, own),
        ([None, 'elfatt', [None], SOFTMAX], [own[0], 'ELFATT', own[2], SOFTMAX]),
    ):
        model = from_config(family, attention=attention)
        assert types(model) == expected
        assert is_overlapping(model) == (family is CSWinTransformer)
