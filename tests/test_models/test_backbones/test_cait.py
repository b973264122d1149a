import pytest
import torch
from torch import nn

from mmlinattn.models import CaiT

pytestmark = pytest.mark.modern

ARCH = dict(embed_dims=12, num_layers=3, num_heads=3, num_class_layers=2)


def build(**options):
    return CaiT(**{'arch': ARCH, 'img_size': 64, 'patch_size': 8, **options}).eval()


def test_stochastic_depth_is_the_same_in_every_block():
    model = build(out_type='cls_token', drop_path_rate=0.1)
    assert [block.drop_path.drop_prob for block in model.blocks] == [0.1] * 3
    for block in model.class_layers.blocks:
        assert isinstance(block.drop_path, nn.Identity)


def test_layer_scale_starts_small():
    model = build(out_type='cls_token')
    model.init_weights()
    for block in (*model.blocks, *model.class_layers.blocks):
        for scale in (block.scale1, block.scale2):
            assert torch.allclose(scale.weight, torch.tensor(1e-5))
    scale = build(layer_scale=1e-6).blocks[0].scale1
    assert torch.allclose(scale.weight, torch.tensor(1e-6), atol=0)


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
