import pytest
import torch

from mmlinattn.models import VisionTransformer

pytestmark = pytest.mark.modern

ARCH = dict(embed_dims=12, num_layers=3, num_heads=3)


@pytest.mark.parametrize('num_layers', (1, 24))
def test_any_depth(num_layers):
    with torch.device('meta'):
        model = VisionTransformer('deit-base', num_layers=num_layers)
    assert len(model.blocks) == num_layers
    assert model.out_indices == (num_layers - 1,)
    assert VisionTransformer.arch_zoo['deit-base']['num_layers'] == 12


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
        VisionTransformer(**{'arch': ARCH, 'img_size': 64, 'patch_size': 8, **options})
