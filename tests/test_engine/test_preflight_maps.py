"""Strides of the maps of any backbone beside the levels of a detector's head, and
outputs of ours beside a classifier's head."""

import re
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from mmdet.models.necks import FPN
from mmdet.models.task_modules.prior_generators import (
    AnchorGenerator,
    MlvlPointGenerator,
    SSDAnchorGenerator,
)
from mmpretrain.models.heads import LinearClsHead, VisionTransformerClsHead
from torch import nn

from mmlinattn.engine.preflight import check_channels, check_levels
from mmlinattn.engine.preflight.maps import maps_of
from mmlinattn.models import SwinTransformer, VisionTransformer


class Own(nn.Module):
    """A backbone of the user's own, of maps of these strides."""

    def __init__(self, strides, dims=8):
        super().__init__()
        steps = [b // a for a, b in zip((1, *strides), strides)]
        channels = [3] + [dims] * len(steps)
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, dims, 3, step, 1), nn.BatchNorm2d(dims))
            for a, step in zip(channels, steps)
        )
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        outs = []
        for stage in self.stages:
            x = stage(x)
            outs.append(x)
        return tuple(outs)


class OnCpu(Own):
    """One that reads values, which have to be there."""

    def forward(self, x):
        return super().forward(x + float(x.sum()))


class Windows(Own):
    """One that takes what no other does."""

    def forward(self, x, boxes):
        return super().forward(x)


def anchors(*strides, kind=AnchorGenerator):
    if kind is MlvlPointGenerator:
        return kind(list(strides))
    return kind(strides=list(strides), ratios=[1.0], scales=[8])


def detector(backbone, generator, outs=5, name='bbox_head', regions=None):
    parts = dict(
        backbone=backbone, neck=FPN([8] * 4, 8, outs or 5), **{name: nn.Module()}
    )
    if outs is None:
        del parts['neck']
    model = nn.ModuleDict(parts)
    model[name].prior_generator = generator
    if regions:
        extractor = SimpleNamespace(featmap_strides=regions)
        model.roi_head = SimpleNamespace(bbox_roi_extractor=extractor)
    return model


PYRAMID, LEVELS = (4, 8, 16, 32), (4, 8, 16, 32, 64)
WRONG = 'boxes lie at wrong places'


@pytest.mark.parametrize('kind', [Own, OnCpu])
@pytest.mark.parametrize(
    'strides, levels, options, expected',
    [
        (PYRAMID, LEVELS, {}, ''),
        (PYRAMID, (8, 16, 32, 64, 128), {}, WRONG),
        ((8, 16, 32, 64), (8, 16, 32, 64, 128), {}, ''),
        ((2, 4, 8, 16), LEVELS, {}, WRONG),
        (PYRAMID, LEVELS, dict(name='rpn_head', regions=[4, 8, 16, 32]), ''),
        (PYRAMID, LEVELS, dict(name='rpn_head', regions=[8, 16, 32, 64]), 'regions'),
        (PYRAMID, PYRAMID, dict(outs=None), ''),
        (PYRAMID, (8, 16, 32, 64), dict(outs=None), WRONG),
        (PYRAMID, LEVELS[:3], {}, 'refused'),
        (PYRAMID, (*LEVELS, 128), {}, 'refused'),
    ],
)
def test_strides_of_a_backbone(kind, strides, levels, options, expected):
    model, doubts = detector(kind(strides), anchors(*levels), **options), []
    model.train()
    refusal = pytest.raises(ValueError, match=f'model.neck makes 5 .*{len(levels)} lev')
    with refusal if expected == 'refused' else nullcontext():
        check_levels(model, doubts.append)
    assert bool(doubts) == (expected not in ('', 'refused'))
    assert expected in ' '.join([*doubts, 'refused'])
    assert all(part.training for part in model.modules())
    assert model.backbone.stages[0][1].num_batches_tracked == 0


def test_what_is_not_judged():
    """Backbones that need more, heads of points with fewer levels, and those of one
    size of photos."""
    points = anchors(*LEVELS[:4], kind=MlvlPointGenerator)
    relative = SSDAnchorGenerator(
        strides=[8, 16, 32, 64, 100],
        ratios=[[2]] * 5,
        basesize_ratio_range=(0.15, 0.9),
        input_size=300,
    )
    no_maps = Own(PYRAMID)
    no_maps.forward = lambda x: x.mean()
    for model in (
        detector(Windows(PYRAMID), anchors(8, 16, 32, 64, 128)),
        detector(no_maps, anchors(8, 16, 32, 64, 128)),
        detector(Own(PYRAMID), points),
        detector(Own(PYRAMID), relative),
        nn.ModuleDict(dict(backbone=Own(PYRAMID), head=nn.Linear(3, 3))),
    ):
        check_levels(model, pytest.fail)
    assert model.backbone.calls == 0  # nothing waits for a head that has no levels


def test_backbones_without_numbers():
    """They run on the meta device where they can, which costs nothing."""
    assert maps_of(Own(PYRAMID)) == [(8, stride) for stride in PYRAMID]
    seen = []
    backbone = Own(PYRAMID)
    backbone.stages[0].register_forward_hook(lambda *args: seen.append(args[2].device))
    maps_of(backbone)
    assert seen == [torch.device('meta')]


ARCH = dict(embed_dims=8, depths=[1, 1], num_heads=[1, 1])
PLAIN = dict(embed_dims=16, num_layers=1, num_heads=2)


@pytest.mark.parametrize('kind', [LinearClsHead, VisionTransformerClsHead])
@pytest.mark.parametrize(
    'backbone, options, advice',
    [
        (SwinTransformer, {}, 'avg_featmap'),
        (SwinTransformer, dict(out_type='raw'), 'avg_featmap'),
        (SwinTransformer, dict(out_type='avg_featmap'), ''),
        (VisionTransformer, {}, 'cls_token'),
        (VisionTransformer, dict(out_type='cls_token'), ''),
    ],
)
def test_output_for_a_classifiers_head(kind, backbone, options, advice):
    backbone = backbone(ARCH if backbone is SwinTransformer else PLAIN, **options)
    head = kind(num_classes=3, in_channels=16)
    model = nn.ModuleDict(dict(backbone=backbone, head=head))
    words = f"out_type={advice!r}, or model.neck=dict(type='GlobalAveragePooling')"
    refusal = pytest.raises(ValueError, match=re.escape(words))
    with refusal if advice else nullcontext():
        check_channels(model)
    pooled = nn.ModuleDict(dict(backbone=backbone, neck=nn.Flatten(), head=head))
    check_channels(pooled)
