import pytest
import torch
from torch import nn

from mmlinattn.functional import feat_scale
from mmlinattn.models.layers import TransformerBlock, drop_path_rates

pytestmark = pytest.mark.modern


def convolved(conv, x, hw_shape):
    """Tokens and their depthwise convolution."""
    maps = x.mT.unflatten(-1, hw_shape)
    return x + conv.double()._conv_forward(maps, conv.weight, conv.bias).flatten(2).mT


@pytest.mark.parametrize('position_convs', (0, 1, 2))
@pytest.mark.parametrize('with_scales', (False, True))
@pytest.mark.parametrize('approximate', ('none', 'tanh'))
@pytest.mark.parametrize('placement', ('pre', 'post'))
def test_matches_the_equations(placement, approximate, with_scales, position_convs):
    """FeatScale acts on the attention's output, LayerScale after it; convolutions of
    positions come before each half, and one in the FFN."""
    block = TransformerBlock(
        8,
        2,
        dict(type='SoftmaxAttention'),
        norm_placement=placement,
        act_cfg=dict(type='GELU', approximate=approximate),
        feat_scale=with_scales,
        layer_scale=1.0 if with_scales else None,
        ffn_conv=position_convs > 0,
        position_convs=position_convs,
    ).double()
    for parameter in block.parameters():
        nn.init.normal_(parameter)
    x, hw_shape = torch.randn(2, 12, 8, dtype=torch.float64), (3, 4)

    def attention(x):
        out = block.attn(x, hw_shape)
        if with_scales:
            scale = block.feat_scale
            out = feat_scale(out, scale.dc_scale, scale.hc_scale) * block.scale1.weight
        return out

    def ffn(x):
        first, second = (m for m in block.ffn.modules() if isinstance(m, nn.Linear))
        assert first.out_features == 32
        x = nn.functional.gelu(first(x), approximate=approximate)
        out = second(convolved(block.ffn_conv, x, hw_shape) if position_convs else x)
        return out * block.scale2.weight if with_scales else out

    expected = x
    for norm, cpe, half in (
        (block.norm1, block.cpe1, attention),
        (block.norm2, block.cpe2, ffn),
    ):
        expected = convolved(cpe, expected, hw_shape) if cpe else expected
        if placement == 'pre':
            expected = expected + half(norm(expected))
        else:
            expected = norm(expected + half(expected))
    found = [cpe is not None for cpe in (block.cpe1, block.cpe2)]
    assert found == [position_convs > 0, position_convs > 1]
    torch.testing.assert_close(block(x, hw_shape), expected)


def test_drop_path_rates_grow_linearly():
    assert drop_path_rates(0.3, 4) == pytest.approx([0, 0.1, 0.2, 0.3])
    assert drop_path_rates(0.3, 1) == [0]


def test_wrong_options():
    with pytest.raises(ValueError, match="norm_placement.*'middle'"):
        TransformerBlock(8, 2, dict(type='SoftmaxAttention'), norm_placement='middle')
    with pytest.raises(ValueError, match='position_convs.*0...2.*3'):
        TransformerBlock(8, 2, dict(type='SoftmaxAttention'), position_convs=3)
