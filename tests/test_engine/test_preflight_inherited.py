"""Warnings of what a base config says of another backbone, and levels of detectors."""

import re
from contextlib import nullcontext

import pytest
from mmengine.config import Config
from mmengine.model import ImgDataPreprocessor
from torch import nn

from mmlinattn.engine.preflight import check_channels, check_inherited, check_levels
from mmlinattn.models import SwinTransformer

WEIGHTS = dict(
    pretrained='swin.pth',
    default_hooks=dict(pretrained=dict(type='mmlinattn.PretrainedBackboneHook')),
)
IMAGENET = dict(mean=[120.0] * 3, std=[60.0] * 3, bgr_to_rgb=True)
ARCH = dict(embed_dims=8, depths=[1, 1, 1], num_heads=[1, 2, 4])


def keys(**mults):
    """A config whose custom_keys have these entries; __ stands for a dot."""
    custom = {key.replace('__', '.'): x for key, x in mults.items()}
    return dict(optim_wrapper=dict(paramwise_cfg=dict(custom_keys=custom)))


TENTH, NO_DECAY = dict(lr_mult=0.1), dict(decay_mult=0.0)
EXISTING = keys(backbone__stages=NO_DECAY, backbone__norm=NO_DECAY)


@pytest.mark.parametrize(
    'cfg, options, message',
    [
        ({}, {}, ''),
        (keys(head=TENTH, absolute_pos_embed=NO_DECAY), {}, ''),
        (EXISTING, {}, ''),
        (keys(backbone=TENTH), {}, 'learn at 0.1 of the rate'),
        ({**keys(backbone=TENTH), **WEIGHTS}, IMAGENET, ''),
        ({**keys(backbone=TENTH), 'load_from': 'all.pth'}, {}, ''),
        ({**keys(backbone=TENTH), 'resume': True}, {}, ''),
        (keys(backbone=dict(lr_mult=1)), {}, ''),
        (
            keys(backbone__layer4=NO_DECAY),
            {},
            "1 of 1 keys .*'backbone.layer4': remove",
        ),
        (
            keys(backbone__norm=NO_DECAY, backbone__blocks=NO_DECAY),
            {},
            '1 of 2 keys .*of its norms have weight decay',
        ),
        (WEIGHTS, IMAGENET, ''),
        (WEIGHTS, {}, 'no std, so the model gets values of 0 to 255'),
        (WEIGHTS, dict(IMAGENET, std=[1.0] * 3), 'no std, .*bgr_to_rgb=True'),
        (WEIGHTS, dict(IMAGENET, bgr_to_rgb=False), 'in the order BGR'),
        ({'load_from': 'all.pth'}, {}, ''),
    ],
)
def test_settings_of_another_backbone(cfg, options, message):
    parts = dict(backbone=SwinTransformer(ARCH))
    model = nn.ModuleDict(dict(parts, data_preprocessor=ImgDataPreprocessor(**options)))
    doubts = []
    check_inherited(Config(cfg), model, doubts.append)
    assert len(doubts) == bool(message), doubts
    assert not message or re.search(message, doubts[0])


def test_more_of_them():
    model = nn.ModuleDict(dict(backbone=SwinTransformer(ARCH, frozen_stages=1)))
    model['head'] = nn.Identity()
    model['head'].hidden_dim = 3072
    decay = dict(optim_wrapper=dict(paramwise_cfg=dict(layer_decay_rate=0.7)))
    doubts = []
    check_inherited(Config(decay), model, doubts.append)
    assert [
        re.search(r'decay of 0\.7|\w+_stages=1|hidden_dim=3072', x)[0] for x in doubts
    ] == ['decay of 0.7', 'frozen_stages=1', 'hidden_dim=3072']
    model['backbone'] = nn.Identity()  # one of a library
    check_inherited(Config(decay), model, pytest.fail)


class Neck(nn.Module):
    """One that returns some of its maps."""

    def __init__(self, places):
        super().__init__()
        self.places = places

    def forward(self, maps):
        return [maps[i] for i in self.places]


def detector(places, strides, kind='AnchorGenerator', **options):
    head = nn.Module()
    head.prior_generator = type(kind, (), dict(strides=[(x, x) for x in strides]))()
    parts = dict(backbone=SwinTransformer(ARCH, **options), neck=Neck(places))
    return nn.ModuleDict(dict(parts, bbox_head=head))


POINTS = 'MlvlPointGenerator'


@pytest.mark.parametrize(
    'model, message',
    [
        (detector([0, 1, 2], [4, 8, 16]), ''),
        (detector([0, 1], [8, 16], out_indices=(1, 2)), ''),
        (detector([0, 1, 2], [8, 16]), r'3 maps .*2 levels .*out_indices=\(1, 2\)'),
        (detector([0, 1], [4, 8, 16], POINTS), 'makes 2 maps of strides .4, 8.'),
        (detector([0, 1, 2], [4, 8], POINTS), ''),
        (detector([0, 1, 2], [8, 16], POINTS), r'3 maps .*out_indices=\(1, 2\)'),
        (detector([0, 1], [8, 16], POINTS), '!lie at wrong places'),
        (detector([0, 3], [4, 8]), r'Neck does not take the 3 maps .*\[8, 16, 32\]'),
    ],
)
def test_levels(model, message):
    doubts = []
    refused = message and message[0] != '!'
    refusal = pytest.raises(ValueError, match=message or 'none')
    with refusal if refused else nullcontext():
        check_levels(model, doubts.append)
    assert bool(doubts) == (message[:1] == '!')


@pytest.mark.parametrize('channels, neck, right', [(32, 0, 1), (16, 0, 0), (16, 1, 1)])
def test_channels_of_a_classifier(channels, neck, right):
    head = type('LinearClsHead', (type('ClsHead', (nn.Module,), {}),), {})()
    head.in_channels = channels
    backbone = SwinTransformer(ARCH, out_type='avg_featmap')
    model = nn.ModuleDict(dict(backbone=backbone, head=head))
    if neck:  # one that may change channels
        model['neck'] = nn.Linear(32, 16)
    refusal = pytest.raises(ValueError, match='set model.head.in_channels=32')
    with nullcontext() if right else refusal:
        check_channels(model)


@pytest.mark.parametrize(
    'places, levels, message',
    [
        ([0, 1, 2], 3, ''),
        ([0, 1, 2], 4, r'makes 3 maps .*num_feature_levels=4: .*num_outs=4'),
        ([0, 1, 3], 3, 'Neck does not take the 3 maps'),
    ],
)
def test_maps_of_a_deformable_detr(places, levels, message):
    """Its head has no anchors, and it takes a number of maps."""
    model = detector(places, [])
    del model['bbox_head']
    model.num_feature_levels = levels
    refusal = pytest.raises(ValueError, match=message or 'none')
    with refusal if message else nullcontext():
        check_levels(model, pytest.fail)


def test_necks_of_other_inputs_are_not_run():
    model = detector([0], [4])
    model['neck'].forward = lambda maps, texts: pytest.fail('it is run')
    check_levels(model, pytest.fail)
    model['neck'].forward = lambda maps: dict(a=maps)
    check_levels(model, pytest.fail)
