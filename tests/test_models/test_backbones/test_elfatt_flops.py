"""Parameters and FLOPs of the ELFATT paper's tables (arXiv 2501.06098).

The paper counts multiply-accumulates, once with all products and once without
those of softmax attention, which counters like fvcore's don't see in a fused
kernel. Its whole models have a classifier of 1,000 classes.
"""
from typing import NamedTuple

import pytest
import torch
from torch import nn

from mmlinattn.analysis import count_flops
from mmlinattn.registry import MODELS

pytestmark = pytest.mark.modern


class Row(NamedTuple):
    """A model of the paper, and what it prints of it.

    Attributes:
        cfg (dict): Config of the backbone.
        params (str): Millions of parameters.
        flops (str): GFLOPs of one image.
        without (str): GFLOPs without the products of softmax attention.
        side (int): Side of the image.
    """
    cfg: dict
    params: str
    flops: str
    without: str
    side: int = 224


CSWIN_T = dict(type='CSWinTransformer', arch='t24181')
CSWIN_B = dict(type='CSWinTransformer', arch='b36292')
SWIN_T = dict(type='SwinTransformer', arch='tiny')
SWIN_B = dict(type='SwinTransformer', arch='base')
ROWS = {
    'CSWin-T-ELFATT 49,49,196': Row(
        dict(CSWIN_T, attention='elfatt', block_sizes=(49, 49, 196)),
        '20', '4.44', '4.13'),
    'CSWin-T-ELFATT': Row(dict(CSWIN_T), '20', '4.56', '4.13'),
    'CSWin-B-ELFATT': Row(
        dict(CSWIN_B, attention='elfatt'), '73', '15.47', '14.46'),
    'CSWin-B-ELFATT 384': Row(
        dict(CSWIN_B, attention='elfatt', block_sizes=576),
        '73', '51.21', '42.48', 384),
    'Swin-T-ELFATT': Row(dict(SWIN_T, attention='elfatt'), '30', '4.99', '4.67'),
    'Swin-B-ELFATT': Row(
        dict(SWIN_B, attention='elfatt'), '91', '16.46', '15.68'),
    'Swin-T-GLOBAL': Row(dict(SWIN_T, attention='global'), '28', '8.81', '4.38'),
    'Swin-T-EFFATT': Row(
        dict(SWIN_T, attention='efficient'), '28', '4.55', '4.45'),
    'CSWin-T-GLOBAL': Row(
        dict(CSWIN_T, attention='global'), '20', '7.60', '4.09'),
    'CSWin-T-LOCAL': Row(dict(CSWIN_T, attention='local'), '20', '4.36', '4.09'),
}


class Classifier(nn.Module):
    """A backbone with a linear head, on torch's meta device."""

    def __init__(self, cfg):
        super().__init__()
        with torch.device('meta'):
            self.backbone = MODELS.build(dict(cfg, out_type='avg_featmap'))
            self.head = nn.Linear(self.backbone.feature_channels[-1], 1000)

    def forward(self, x):
        return self.head(self.backbone(x)[-1])


def measure(cfg, side):
    """Parameters, and the FLOPs of one image."""
    model = Classifier(cfg)
    images = torch.zeros(1, 3, side, side, device='meta')
    num_params = sum(parameter.numel() for parameter in model.parameters())
    return num_params, count_flops(model, images)


@pytest.mark.parametrize('name', ROWS)
def test_the_papers_numbers(name):
    """To the last digit that the paper prints."""
    row = ROWS[name]
    num_params, counted = measure(row.cfg, row.side)
    without = counted.without_softmax_attention()
    assert f'{num_params / 1e6:.0f}' == row.params
    assert f'{counted.total() / 1e9:.2f}' == row.flops
    assert f'{without / 1e9:.2f}' == row.without


# Millions of parameters and GFLOPs as the paper of agent attention (arXiv
# 2312.08874) prints them, but for Agent-CSWin-T: 21 there, 20.46 counted here.
AGENTS = {
    'Agent-Swin-T': (SWIN_T, '29', '4.5'),
    'Agent-Swin-S': (dict(SWIN_T, arch='small'), '50', '8.7'),
    'Agent-Swin-B': (SWIN_B, '88', '15.4'),
    'Agent-CSWin-T': (CSWIN_T, '20', '4.3'),
    'Agent-CSWin-B': (CSWIN_B, '73', '14.9'),
}


@pytest.mark.parametrize('name', AGENTS)
def test_agent_attention(name):
    """That paper counts neither normalization nor the resizing of biases."""
    cfg, params, flops = AGENTS[name]
    num_params, counted = measure(dict(cfg, attention='agent'), 224)
    kinds = counted.by_kind()
    total = counted.total() - kinds['norm'] - kinds['resampling']
    assert f'{num_params / 1e6:.0f}' == params
    assert f'{total / 1e9:.1f}' == flops
