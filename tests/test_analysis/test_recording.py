import itertools

import pytest
import torch
from torch import nn

from mmlinattn.analysis import attentions_of, blocks_of, watch
from mmlinattn.models import CaiT, SwinTransformer, VisionTransformer


def swin():
    arch = dict(embed_dims=8, depths=[2, 1], num_heads=[2, 4])
    plain = dict(type='WindowAttention', window_size=4)
    attention = [[plain, dict(plain, shift_size=2)], plain]
    return SwinTransformer(arch, attention=attention).eval()


def test_attentions_and_blocks_in_their_order():
    model = nn.ModuleDict(dict(backbone=swin()))
    names = [f'backbone.stages.{i}.blocks.{j}' for i, j in ((0, 0), (0, 1), (1, 0))]
    assert list(blocks_of(model)) == names
    assert list(attentions_of(model)) == [f'{name}.attn' for name in names]


def test_class_attention_is_no_block():
    arch = dict(embed_dims=16, num_layers=2, num_heads=2, num_class_layers=1)
    model = CaiT(arch, img_size=32, out_type='cls_token')
    assert len(attentions_of(model)) == 3 and len(blocks_of(model)) == 2


def test_what_is_seen_is_what_happens():
    """Outputs of blocks, and rows times values make the attention's product."""
    model = swin().double()
    calls, blocks = [], []

    def on_attention(call):
        height, width = call.map_shape
        places = itertools.product(range(height), range(width))
        queries = [call.query_at(x / width, y / height) for y, x in places]
        assert len({*queries}) == height * width
        calls.append((call, call.rows(queries), queries))

    images = torch.randn(2, 3, 40, 56, dtype=torch.float64)
    expected = model(images)
    with torch.no_grad(), watch(model, on_attention, blocks.append):
        outs = model(images)
    for a, b in zip(outs, expected):
        torch.testing.assert_close(a, b)
    assert [call.name for call, *_ in calls] == list(attentions_of(model))
    assert [call.hw_shape for call, *_ in calls] == [(12, 16), (12, 16), (8, 8)]
    assert [call.map_shape for call, *_ in calls] == [(10, 14), (10, 14), (5, 7)]
    assert [block.hw_shape for block in blocks] == [(10, 14), (10, 14), (5, 7)]
    # of windows without padded keys, the cropped rows are all there is
    call, rows, queries = calls[0]
    v = call.v.unflatten(1, call.hw_shape)[:, :10, :14].flatten(1, 2)
    out = rows @ v.unflatten(-1, (2, -1)).transpose(1, 2)
    attended = call.module.attend(call.q, call.k, call.v, call.hw_shape)
    whole = torch.tensor(queries) // 16 < 8
    whole &= torch.tensor(queries) % 16 < 12
    torch.testing.assert_close(
        out.transpose(1, 2).flatten(2)[:, whole], attended[:, queries][:, whole]
    )


def test_nothing_stays():
    model = swin()
    before = [dict(vars(module)) for module in model.modules()]
    with pytest.raises(ZeroDivisionError), watch(model, lambda call: 1 / 0, print):
        model(torch.randn(1, 3, 32, 32))
    for module, own in zip(model.modules(), before):
        assert vars(module).keys() == own.keys()
        assert not module._forward_hooks and not module._forward_pre_hooks


def test_extra_tokens():
    arch = dict(embed_dims=16, num_layers=1, num_heads=2)
    model = VisionTransformer(arch, img_size=32, patch_size=8).eval()
    seen = []
    with torch.no_grad(), watch(model, seen.append):
        model(torch.randn(1, 3, 32, 48))
    (call,) = seen
    assert call.num_extra == 1 and call.map_shape == (4, 6)
    assert call.query_at(0, 0) == 1 and call.query_at(1, 1) == 24
    assert call.query_at(0.5, 0.25) == 1 + 6 + 3
    assert call.rows([5]).shape == (1, 2, 1, 24)


def test_a_model_without_attention():
    with pytest.raises(ValueError, match='Conv2d has no attention of mmlinattn'):
        attentions_of(nn.Conv2d(1, 1, 1))
