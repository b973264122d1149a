import pytest

pytestmark = pytest.mark.modern

BARE = """
import sys


class Blocker:
    blocked = ('mmdet', 'mmseg', 'mmpretrain', 'mmcv.ops')

    def find_spec(self, name, path=None, target=None):
        if any(name == b or name.startswith(b + '.') for b in self.blocked):
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)


sys.meta_path.insert(0, Blocker())
import torch

import mmlinattn.models
from mmlinattn.registry import MODELS

small = dict(
    embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_heads=[1, 2, 3, 4])
model = MODELS.build(dict(type='SOFTPlusPlus', arch=small))
model.init_weights()
sum(out.sum() for out in model(torch.rand(1, 3, 64, 64))).backward()
assert not any(name.split('.')[0] in Blocker.blocked for name in sys.modules)
"""


def test_backbones_need_torch_mmengine_and_mmcv_cnn_only(run_python):
    """mmcv-lite has no mmcv.ops."""
    run_python(BARE)


def test_functional_needs_torch_only(run_python):
    loaded = run_python("""
import sys

import mmlinattn.functional

print(*{name.split('.')[0] for name in sys.modules})
""").split()
    assert 'torch' in loaded
    assert not [name for name in loaded if name in ('mmengine', 'mmcv', 'mmdet')]
