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


@pytest.mark.parametrize(
    'options, message',
    (
        (dict(arch={key: ARCH[key] for key in list(ARCH)[:3]}), 'num_class_layers'),
        (dict(arch=dict(ARCH, num_class_layers=0)), 'num_class_layers.*got 0'),
    ),
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)
