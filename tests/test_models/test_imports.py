import pytest
from loading import BLOCK

MODELS = """
import torch

import mmlinattn.models
from mmlinattn.registry import MODELS

small = dict(
    embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_heads=[1, 2, 3, 4])
model = MODELS.build(dict(type='SOFTPlusPlus', arch=small))
model.init_weights()
sum(out.sum() for out in model(torch.rand(1, 3, 64, 64))).backward()
"""
MEASURES = """
from importlib import metadata


def version(name, installed=metadata.version):
    if 'mm' in name:
        raise metadata.PackageNotFoundError(name)
    return installed(name)


metadata.version = version
import torch

from mmlinattn.analysis import count_flops, hc_proportion, watch
from mmlinattn.functional import softmax_free_attention

x = torch.rand(1, 1, 16, 4)
assert 0 < hc_proportion(softmax_free_attention(x, x[:, :, ::4], x)) < 1
"""


@pytest.mark.parametrize(
    'blocked, code',
    [
        # mmcv-lite has no mmcv.ops
        (('mmdet', 'mmseg', 'mmpretrain', 'mmcv.ops'), MODELS),
        (('mmdet', 'mmseg', 'mmpretrain', 'mmcv', 'mmengine', 'mim'), MEASURES),
    ],
    ids=['models need MMEngine and mmcv.cnn', 'functional and analysis need torch'],
)
def test_what_the_rooms_need(run_python, blocked, code):
    run_python(BLOCK.format(blocked=blocked) + code)
