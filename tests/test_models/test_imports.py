"""What a project that has mmcv-lite imports; ``tests/test_torch_alone.py`` has none."""

from loading import BLOCK

MODELS = """
import torch

from mmlinattn.registry import MODELS

small = dict(
    embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_heads=[1, 2, 3, 4])
model = MODELS.build(dict(type='SOFTPlusPlus', arch=small))
model.init_weights()
sum(out.sum() for out in model(torch.rand(1, 3, 64, 64))).backward()
"""


def test_registries_need_no_operators(run_python):
    """mmcv-lite has no mmcv.ops."""
    blocked = ('mmdet', 'mmseg', 'mmpretrain', 'mmcv.ops')
    run_python(BLOCK.format(blocked=blocked) + MODELS)
