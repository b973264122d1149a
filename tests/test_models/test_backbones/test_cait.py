import pytest
import torch
from torch import nn

from mmlinattn.models import CaiT, ClassAttention, TalkingHeadsAttention

pytestmark = pytest.mark.modern

ARCH = dict(embed_dims=12, num_layers=3, num_heads=3, num_class_layers=2)


def build(**options):
    return CaiT(**{'arch': ARCH, 'img_size': 64, 'patch_size': 8, **options}).eval()


def randomize(model):
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def images():
    return torch.randn(2, 3, 48, 72)


def test_structure():
    with torch.device('meta'):
        model = CaiT('s24', out_type='cls_token', drop_path_rate=0.1)
    assert len(model.blocks) == 24 and model.feature_channels == (384,)
    for block in model.blocks:
        assert isinstance(block.attn, TalkingHeadsAttention)
        assert block.attn.num_heads == 8 and block.norm1.eps == 1e-6
        assert block.drop_path.drop_prob == 0.1  # the same in every block
    assert model.cls_token is None
    assert model.pos_embed.table.shape == (1, 14**2, 384)
    assert len(model.class_layers.blocks) == 2
    for block in model.class_layers.blocks:
        assert isinstance(block.attn, ClassAttention)
        assert isinstance(block.drop_path, nn.Identity)


def test_layer_scale_starts_small():
    model = build(out_type='cls_token')
    model.init_weights()
    for block in (*model.blocks, *model.class_layers.blocks):
        for scale in (block.scale1, block.scale2):
            assert torch.allclose(scale.weight, torch.tensor(1e-5))
    scale = build(layer_scale=1e-6).blocks[0].scale1
    assert torch.allclose(scale.weight, torch.tensor(1e-6), atol=0)


def test_class_layers_match_the_definition():
    model = randomize(build(out_type='cls_token'))
    kept = []
    model.class_layers.register_forward_hook(lambda *args: kept.append(args[1:]))
    (out,) = model(images())
    (((patches, hw_shape), tokens),) = kept
    assert patches.shape == (2, 54, 12) and hw_shape == (6, 9)
    token = model.class_layers.cls_token.expand(2, -1, -1)
    for block in model.class_layers.blocks:
        x = block.norm1(torch.cat((token, patches), dim=1))
        token = token + block.scale1.weight * block.attn(x, hw_shape)[:, :1]
        hidden = block.ffn(block.norm2(token))
        token = token + block.scale2.weight * hidden
    torch.testing.assert_close(tokens[:, :1], token)
    assert tokens[:, 1:].equal(patches)
    torch.testing.assert_close(out, model.norm2(token)[:, 0])


@pytest.mark.parametrize('out_type', ('featmap', 'avg_featmap'))
def test_no_class_layers_without_a_class_token(out_type):
    """What a mode leaves unused would stall distributed training."""
    model = build(out_type=out_type).train()
    assert model.class_layers is None
    assert not any('class' in key or 'cls' in key for key in model.state_dict())
    (out,) = model(images())
    (out * torch.randn_like(out)).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_class_layers_train():
    model = randomize(build(out_type='cls_token', frozen_stages=3)).train()
    model(images())[0].sum().backward()
    trained = {name for name, p in model.named_parameters() if p.grad is not None}
    assert trained == {
        name
        for name, _ in model.named_parameters()
        if name.startswith(('class_layers.', 'norm2.'))
    }
    for name in trained:
        assert model.get_layer_depth(name, '') == (4, 5)


def test_scales_are_for_patches_alone():
    model = build(out_type='cls_token', attn_scale=True, feat_scale=True)
    vectors = [
        name
        for name, _ in model.named_parameters()
        if name.endswith(('omega', 'dc_scale', 'hc_scale'))
    ]
    assert len(vectors) == 3 * 3
    assert all(name.startswith('blocks.') for name in vectors)


def test_feat_scale_comes_before_layer_scale():
    block = randomize(build(feat_scale=True)).blocks[0]
    x = torch.randn(2, 12, 12)
    attended = block.attn(x, (3, 4))
    low = attended.mean(1, keepdim=True)
    scale = block.feat_scale
    expected = (1 + scale.dc_scale) * low + (1 + scale.hc_scale) * (attended - low)
    torch.testing.assert_close(
        block.attention(x, (3, 4)), block.scale1.weight * expected
    )


@pytest.mark.parametrize(
    'options, message',
    (
        (dict(arch='m48'), "arch.*'s24'.*'m48'"),
        (dict(arch={key: ARCH[key] for key in list(ARCH)[:3]}), 'num_class_layers'),
        (dict(arch=dict(ARCH, num_class_layers=0)), 'num_class_layers.*got 0'),
        (dict(drop_path_rate=1.0), 'drop_path_rate.*1'),
    ),
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)
