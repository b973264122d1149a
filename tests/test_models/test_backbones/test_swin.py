import pytest
import torch
from torch import nn

from mmlinattn.models import (
    PatchMerging,
    SoftmaxAttention,
    SwinTransformer,
    WindowAttention,
)
from mmlinattn.weights import pretrained

pytestmark = pytest.mark.modern

ARCH = dict(embed_dims=8, depths=[2, 3], num_heads=[1, 2])


def build(**options):
    return SwinTransformer(**{'arch': ARCH, **options}).eval()


def randomize(model):
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize(
    'arch, dims, depths, heads',
    (
        ('tiny', 96, (2, 2, 6, 2), (3, 6, 12, 24)),
        ('small', 96, (2, 2, 18, 2), (3, 6, 12, 24)),
        ('base', 128, (2, 2, 18, 2), (4, 8, 16, 32)),
    ),
)
def test_structure(arch, dims, depths, heads):
    with torch.device('meta'):
        model = SwinTransformer(arch)
    assert model.feature_channels == (dims, 2 * dims, 4 * dims, 8 * dims)
    assert [len(stage.blocks) for stage in model.stages] == list(depths)
    for i, stage in enumerate(model.stages):
        for j, block in enumerate(stage.blocks):
            assert type(block.attn) is WindowAttention and block.pre_norm
            assert block.attn.num_heads == heads[i]
            assert (block.attn.window_size, block.attn.shift_size) == (7, j % 2 * 3)
            assert block.norm1.eps == block.norm2.eps == 1e-5
        assert stage.pos_embed is None and stage.cls_token is None
        assert getattr(model, f'norm{i}').eps == 1e-5
        assert (type(stage.embedding) is PatchMerging) == (i > 0)


def test_merging_joins_four_neighbors():
    merging = randomize(PatchMerging(3, 5))
    x = torch.randn(2, 3, 5, 7)
    padded = nn.functional.pad(x, (0, 1, 0, 1))
    out = merging(x)
    assert out.shape == (2, 5, 3, 4)
    for row in range(3):
        for col in range(4):
            four = [
                padded[:, :, 2 * row + i, 2 * col + j]
                for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))
            ]
            normed = nn.functional.layer_norm(
                torch.cat(four, 1), (12,), merging.norm.weight, merging.norm.bias
            )
            torch.testing.assert_close(
                out[:, :, row, col], normed @ merging.reduction.weight.mT
            )


def test_weights_start_as_in_the_paper():
    model = SwinTransformer(dict(embed_dims=32, depths=[1, 1], num_heads=[1, 1]))
    model.init_weights()
    reduction = model.stages[1].embedding.reduction
    assert 0.015 < reduction.weight.std() < 0.025
    table = model.stages[1].blocks[0].attn.relative_position_bias_table
    assert 0.01 < table.std() < 0.03


@pytest.mark.parametrize('hw_shape', ((14, 14), (9, 16)))
def test_feat_scale_takes_the_mean_of_the_whole_map(hw_shape):
    """Not of a window, and without what windows were padded with."""
    for block in randomize(build(feat_scale=True)).stages[0].blocks:
        nn.init.constant_(block.feat_scale.hc_scale, -1)  # the mean alone is left
        x = torch.randn(2, hw_shape[0] * hw_shape[1], 8)
        branch = block.attention(x, hw_shape)
        attended = block.attn(x, hw_shape).mean(1, keepdim=True)
        expected = (1 + block.feat_scale.dc_scale) * attended
        torch.testing.assert_close(branch, expected.expand_as(branch))


def test_another_attention():
    """By stage, or as a pattern over a stage's blocks."""
    softmax = dict(type='SoftmaxAttention')
    window = dict(type='WindowAttention', window_size=4)
    model = build(attention=[softmax, [window, softmax]])
    assert [[type(block.attn) for block in stage.blocks] for stage in model.stages] == [
        [SoftmaxAttention] * 2,
        [WindowAttention, SoftmaxAttention, WindowAttention],
    ]
    assert [out.shape[1:] for out in model(torch.randn(1, 3, 50, 35))] == [
        (8, 13, 9),
        (16, 7, 5),
    ]


def test_classifier_weights_for_all_maps(tmp_path, monkeypatch):
    """The norms of earlier maps start fresh, as a classifier has none."""
    classifier = randomize(build(out_type='avg_featmap'))
    assert not hasattr(classifier, 'norm0')
    path = str(tmp_path / 'weights.pth')
    torch.save(classifier.state_dict(), path)
    said = []
    monkeypatch.setattr(pretrained, 'print_log', lambda text, *args: said.append(text))
    model = build(init_cfg=dict(type='Pretrained', checkpoint=path))
    model.init_weights()
    assert said[0].endswith('start as fresh norms: 2 (norm0.weight, norm0.bias)')
    x = torch.randn(2, 3, 64, 96)
    first, last = model(x)
    torch.testing.assert_close(last.mean((2, 3)), classifier(x)[0])
    assert first.mean(1).abs().max() < 1e-5  # normed: weight 1, bias 0


@pytest.mark.parametrize(
    'options, message',
    (
        (dict(arch='large'), "arch.*'base'.*'large'"),
        (dict(attention='spiral'), "attention must be one of.*'local'.*'spiral'"),
        (dict(attention=[dict(type='SoftmaxAttention')]), 'attention.*2 stages.*1'),
        (dict(arch=dict(ARCH, depths=2)), 'one positive integer for each stage'),
        (dict(arch=dict(ARCH, embed_dims=0)), 'one positive integer for each stage'),
        (dict(arch=dict(ARCH, embed_dims=[8])), 'one positive integer for each stage'),
        (dict(out_type='cls_token'), "cls_token.*'avg_featmap'"),
    ),
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)
