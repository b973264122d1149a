import pytest
import torch
from torch import nn

from mmlinattn.models import VisionTransformer

pytestmark = pytest.mark.modern

ARCH = dict(embed_dims=12, num_layers=3, num_heads=3)


def build(**options):
    model = VisionTransformer(
        **{'arch': ARCH, 'img_size': 64, 'patch_size': 8, **options}
    )
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.eval()


def test_structure():
    with torch.device('meta'):
        model = VisionTransformer(drop_path_rate=0.1)
    assert len(model.blocks) == model.num_stages == 12
    assert model.out_indices == (11,) and model.feature_channels == (384,)
    for i, block in enumerate(model.blocks):
        assert block.pre_norm and block.attn.num_heads == 6
        assert block.norm1.eps == block.norm2.eps == 1e-6
        (activation,) = (m for m in block.ffn.modules() if type(m) is nn.GELU)
        assert activation.approximate == 'none'
        rate = getattr(block.drop_path, 'drop_prob', 0)
        assert rate == pytest.approx(0.1 * i / 11)
    assert model.norm11.eps == 1e-6
    assert model.cls_token.shape == (1, 1, 384)
    assert model.pos_embed.table.shape == (1, 1 + 14**2, 384)


@pytest.mark.parametrize('num_layers', (1, 24))
def test_any_depth(num_layers):
    with torch.device('meta'):
        model = VisionTransformer('deit-base', num_layers=num_layers)
    assert len(model.blocks) == num_layers
    assert model.out_indices == (num_layers - 1,)
    assert VisionTransformer.arch_zoo['deit-base']['num_layers'] == 12


@pytest.mark.parametrize('height, width', ((64, 64), (48, 72), (33, 95)))
def test_matches_the_definition(height, width):
    model = build(out_indices=(0, 2))
    image = torch.randn(2, 3, height, width)
    padded = nn.functional.pad(image, (0, -width % 8, 0, -height % 8))
    maps = model.patch_embed.layer[0](padded)
    hw_shape = maps.shape[2:]
    stored = model.pos_embed.table[:, 1:].unflatten(1, (8, 8)).permute(0, 3, 1, 2)
    maps = maps + nn.functional.interpolate(
        stored, hw_shape, mode='bicubic', align_corners=False
    )
    token = model.cls_token + model.pos_embed.table[:, :1]
    x = torch.cat((token.expand(2, -1, -1), maps.flatten(2).mT), dim=1)
    expected = []
    for block in model.blocks:
        x = x + block.attn(block.norm1(x), hw_shape)
        x = x + block.ffn(block.norm2(x))
        expected.append(x)
    for i, out in zip((0, 2), model(image)):
        norm = getattr(model, f'norm{i}')
        want = norm(expected[i])[:, 1:].mT.unflatten(-1, hw_shape)
        torch.testing.assert_close(out, want)
    assert not hasattr(model, 'norm1')


@pytest.mark.parametrize(
    'options, message',
    (
        (dict(num_layers=0), 'num_layers.*positive integer, got 0'),
        (dict(arch=dict(ARCH, num_heads=[3])), r'num_heads.*got \[3\]'),
        (dict(patch_size=7), 'patch_size=7 and img_size=64'),
        (dict(patch_size=0), 'patch_size=0'),
        (dict(img_size=0), 'img_size=0'),
        (dict(out_type='cls_token', out_indices=(1,)), r'out_indices must be \(2,\)'),
    ),
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)
