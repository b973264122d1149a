"""Focused, InLine and norm-aware attention beside those of the official code."""

import nalaformer_fixture as nalaformer
import pytest
import torch
import variants_fixture as official
from torch import nn

from mmlinattn.models import (
    FocusedLinearAttention,
    InLineAttention,
    NormAwareLinearAttention,
    TransformerBlock,
)

NAMES = {
    'dwc': 'local_conv',
    'get_v': 'lepe',
    'scale': 'focus_scale',
    'positional_encoding': 'pos_embed.table',
}


def assert_close(out, expected):
    assert (out - expected).norm() < 1e-5 * expected.norm()


@pytest.mark.parametrize('family', ['swin', 'cswin'])
def test_focused(family):
    """All official weights are used."""
    module = FocusedLinearAttention(
        official.DIMS, official.HEADS, map_side=official.SIDE, lepe=family == 'cswin'
    )
    state_dict = {}
    for key, value in official.focused_weights().items():
        first, dot, rest = key.partition('.')
        state_dict[NAMES.get(first, first) + dot + rest] = value
    state_dict['focus_scale'] = state_dict['focus_scale'].flatten()
    missing, unexpected = module.load_state_dict(state_dict, strict=False)
    assert not missing
    assert unexpected == ['lepe.weight', 'lepe.bias'] * (family == 'swin')
    if family == 'cswin':
        module.proj = nn.Identity()
    out = module.eval()(official.focused_tokens(), (official.SIDE, official.SIDE))
    assert_close(out, official.focused_outputs()[family])


def test_class_token_of_inline():
    """It is in the product and in the mean, but not convolved, as in InLine-DeiT."""
    module = InLineAttention(official.DIMS, official.HEADS)
    weights = official.weights('inline_deit').items()
    module.load_state_dict({k.replace('residual', 'filters'): x for k, x in weights})
    out = module(official.image('inline_deit'), (official.SIDE, official.SIDE))
    assert_close(out, official.outputs('inline_deit')['tokens'])


@pytest.mark.parametrize('norm_placement', ('pre', 'post'))
@pytest.mark.parametrize('reads_shortcut', (False, True))
def test_tokens_that_filters_are_made_of(reads_shortcut, norm_placement):
    attention = dict(type='InLineAttention', reads_shortcut=reads_shortcut)
    block = TransformerBlock(8, 2, attention, norm_placement=norm_placement).eval()
    means = []
    block.attn.filters.register_forward_pre_hook(
        lambda module, args: means.append(args[0])
    )
    x = 1 + torch.randn(2, 6, 8)
    block(x, (2, 3))
    normed = norm_placement == 'pre' and not reads_shortcut
    expected = block.norm1(x) if normed else x
    torch.testing.assert_close(means[0], expected.mean(1)[..., None])


def test_norm_aware():
    """All official weights are used."""
    module = NormAwareLinearAttention(nalaformer.DIMS, nalaformer.HEADS)
    names = dict(qkvg='qkv', ln='norm', out_proj='proj')
    state_dict = {}
    for key, value in nalaformer.weights().items():
        first, dot, rest = key.partition('.')
        state_dict[names.get(first, first) + dot + rest] = value
    module.load_state_dict(state_dict)
    out = module.eval()(nalaformer.tokens(), nalaformer.HW_SHAPE)
    assert_close(out, nalaformer.output())
