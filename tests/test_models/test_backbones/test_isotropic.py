"""VisionTransformer and CaiT."""

import pytest
import torch
from torch import nn

from mmlinattn.models import CaiT, VisionTransformer

ARCH = dict(embed_dims=12, num_layers=3, num_heads=3, num_class_layers=2)


def cait(**options):
    return CaiT(ARCH, img_size=64, patch_size=8, **options).eval()


@pytest.mark.parametrize('num_layers', (1, 24))
def test_any_depth(num_layers):
    with torch.device('meta'):
        model = VisionTransformer('deit-base', num_layers=num_layers)
    assert len(model.blocks) == num_layers
    assert model.out_indices == (num_layers - 1,)
    assert VisionTransformer.arch_zoo['deit-base']['num_layers'] == 12


def test_blocks_of_cait_start_as_in_the_paper():
    """Stochastic depth is the same in all of them, layer scale small."""
    model = cait(out_type='cls_token', drop_path_rate=0.1)
    model.init_weights()
    assert [block.drop_path.drop_prob for block in model.blocks] == [0.1] * 3
    for block in model.class_layers.blocks:
        assert isinstance(block.drop_path, nn.Identity)
    for block in (*model.blocks, *model.class_layers.blocks):
        for scale in (block.scale1, block.scale2):
            assert torch.allclose(scale.weight, torch.tensor(1e-5))
    scale = cait(block=dict(layer_scale=1e-6)).blocks[0].scale1
    assert torch.allclose(scale.weight, torch.tensor(1e-6), atol=0)
