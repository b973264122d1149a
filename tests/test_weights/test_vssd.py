"""Sizes of VSSD beside the official code, whose outputs test_conversion.py has."""

import math
import re

import pytest
import torch
import vssd_fixture as vssd
from loading import load_module
from our_configs import ENTRIES

from mmlinattn.models import VSSD


@pytest.mark.modern_full
def test_parameters():
    """They equal those of the paper's classifiers."""
    for size, number in vssd.outputs('parameters').items():
        with torch.device('meta'):
            model = VSSD(size, out_type='avg_featmap')
        head = 1000 * (model.feature_channels[-1] + 1)
        assert sum(x.numel() for x in model.parameters()) + head == number
    assert {*vssd.outputs('parameters')} == {*VSSD.arch_zoo}


def of_other_heads(size, hw_shape):
    """Multiply-accumulates of products with shared queries and keys, of all heads but
    one, for an image of H x W pixels."""
    arch, total = VSSD.arch_zoo[size], 0
    for i, (depth, heads) in enumerate(zip(arch['depths'][:-1], arch['num_heads'])):
        num_tokens = math.prod(side // 2 ** (i + 2) for side in hw_shape)
        dims = 2 * arch['embed_dims'] * 2**i // heads  # of values and states
        total += depth * 2 * num_tokens * dims**2 * (heads - 1)
    return total


@pytest.mark.modern_full
def test_printed_flops():
    """The official counter sees broadcast products once."""
    sizes = {arch if arch == 'micro' else arch[0]: arch for arch in VSSD.arch_zoo}
    shapes = dict(in1k=(224, 224), coco=(800, 1280), ade20k=(512, 2048))
    printed = load_module('docs/site/model_zoo.py').read_printed()
    rows = {name: row for name, row in printed.items() if 'vssd' in name}
    assert len(rows) == 15
    for name, row in rows.items():
        size = sizes[re.search(r'vssd-(\w+?)(-mesa)?_', name)[1]]
        shape = next(shapes[data] for data in shapes if data in name)
        flops = ENTRIES[name]['Metadata']['FLOPs'] - of_other_heads(size, shape)
        digits = len(row['flops'].partition('.')[2])
        assert f'{flops / 1e9:.{digits}f}' == row['flops'], name
        if name == 'mask-rcnn_vssd-t_fpn_1x_coco':
            assert flops == 265283568640  # in the official config
