"""Checks before a run of channels, sizes and numbers of objects, in parts."""

import re
from contextlib import nullcontext
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.model import ImgDataPreprocessor
from PIL import Image
from torch import nn

from mmlinattn.engine.preflight.objects import check_objects
from mmlinattn.engine.preflight.photos import (
    check_channels_of,
    check_smallest,
    check_windows,
)
from mmlinattn.models import SwinTransformer

COLORS = dict(mean=[120.0] * 3, std=[60.0] * 3)


def model_of(in_channels=3, ours=True, **options):
    """A model of a backbone and a preprocessor."""
    backbone = nn.Conv2d(in_channels, 8, 1)
    if ours:
        arch = dict(embed_dims=8, depths=[1, 1], num_heads=[1, 2])
        backbone = SwinTransformer(arch, in_channels=in_channels)
    preprocessor = ImgDataPreprocessor(**options)
    return nn.ModuleDict(dict(backbone=backbone, data_preprocessor=preprocessor))


def photo(channels, height=40, width=50):
    return dict(inputs=torch.zeros(channels, height, width))


@pytest.mark.parametrize(
    'channels, model, expected',
    [
        (3, model_of(**COLORS), ''),
        (1, model_of(1, mean=[120.0], std=[60.0]), ''),
        (4, model_of(4), ''),
        (1, model_of(**COLORS), 'has 1 channels, .*3 values of mean and 3 .*gray'),
        (4, model_of(4, **COLORS), 'has 4 channels, .*3 values of mean'),
        (4, model_of(), 'the model gets 4, .*in_channels=3: set .*in_channels=4'),
        (4, model_of(ours=False), '!the model gets 4, .*in_channels=3'),
        # the library takes three of four channels
        (4, model_of(bgr_to_rgb=True), '!4 channels, of which .*makes 3'),
    ],
)
def test_channels(channels, model, expected):
    doubts = []
    refused = expected and not expected.startswith('!')
    refusal = pytest.raises(ValueError, match=expected or 'none')
    with refusal if refused else nullcontext():
        check_channels_of('train_dataloader', model, photo(channels), doubts.append)
    assert bool(doubts) == (expected[:1] == '!')
    assert not doubts or re.search(expected[1:], doubts[0])


def test_samples_of_other_kinds_are_not_judged():
    for sample in (None, dict(inputs=[torch.zeros(1, 9, 9)]), dict(inputs=np.ones(3))):
        check_channels_of('train_dataloader', model_of(**COLORS), sample, pytest.fail)
    check_channels_of('train_dataloader', nn.Identity(), photo(4), pytest.fail)


class Photos:
    """Photos of (width, height), which a pipeline halves."""

    def __init__(self, sizes, folder=None):
        self.sizes, self.folder, self.read = sizes, folder, []

    def __len__(self):
        return len(self.sizes)

    def get_data_info(self, index):
        width, height = self.sizes[index]
        if self.folder is None:
            return dict(width=width, height=height, img_path=f'{index}.png')
        path = self.folder / f'{index}.png'
        Image.new('L', (width, height)).save(path)
        return dict(img_path=str(path))

    def __getitem__(self, index):
        self.read.append(index)
        pixels = np.zeros((self.sizes[index][1], self.sizes[index][0], 3), np.uint8)
        pixels = cv2.resize(pixels, tuple(side // 2 for side in self.sizes[index]))
        return dict(inputs=torch.from_numpy(pixels).permute(2, 0, 1))


Photos.__module__ = 'mmdet.datasets'


@pytest.mark.parametrize('key', ['val_dataloader', 'train_dataloader'])
@pytest.mark.parametrize(
    'size, options, message',
    [
        ((100, 64), {}, ''),
        ((100, 63), {}, '1.png, 100 x 63 pixels, becomes 50 x 31'),
        ((100, 63), dict(pad_size_divisor=32), ''),
        ((900, 1), dict(pad_size_divisor=32), '1.png, 900 x 1 pixels, can not be'),
    ],
)
def test_the_smallest_photo(key, size, options, message, tmp_path):
    model, folder = model_of(**options), tmp_path if size[0] < 200 else None
    # a training crops and pads by its own rules
    wrong = message and (key[0] == 'v' or 'can not' in message)
    refusal = pytest.raises(ValueError, match=f'{key}: {message}')
    with refusal if wrong else nullcontext():
        check_smallest(
            Config(), key, model, Photos([(300, 300), size, (400, 300)], folder)
        )


def test_large_photos_cost_no_time():
    photos = Photos([(300, 300), (900, 200)])
    check_smallest(Config(), 'val_dataloader', model_of(), photos)
    assert not photos.read


def segmentor(crop=(64, 64), stride=(48, 48), head='FCNHead', padding=None):
    model = model_of()
    model['decode_head'] = type(head, (nn.Module,), {})()
    model.test_cfg = dict(mode='slide', crop_size=crop, stride=stride)
    model['data_preprocessor'].test_cfg = padding
    return model


@pytest.mark.parametrize(
    'options, message',
    [
        ({}, ''),
        (dict(padding=dict(size_divisor=32)), ''),
        (dict(head='Mask2FormerHead'), ''),
        (dict(stride=None), r'needs crop_size=\(H, W\) and stride'),
        (dict(crop=(16, 64), stride=(8, 8)), 'less than the 32 x 32'),
        (dict(head='Mask2FormerHead', padding=dict(size=(64, 64))), 'can not slide'),
        (dict(stride=(65, 48)), '!leave gaps'),
    ],
)
def test_windows_that_slide(options, message):
    doubts, model = [], segmentor(**options)
    refused = message and message[0] != '!'
    refusal = pytest.raises(ValueError, match=message or 'none')
    with refusal if refused else nullcontext():
        check_windows('val_dataloader', model, doubts.append)
    assert bool(doubts) == (message[:1] == '!')


class Annotated:
    """A data set with a number of objects in each photo, and one that is ignored."""

    def __init__(self, *counts):
        self.counts = counts

    def __len__(self):
        return len(self.counts)

    def get_data_info(self, index):
        ignored = [dict(ignore_flag=1)]
        return dict(instances=[dict(ignore_flag=0)] * self.counts[index] + ignored)


@pytest.mark.parametrize(
    'test_cfg, attributes, key',
    [
        (dict(max_per_img=5), {}, ''),
        (dict(max_per_img=4), {}, 'model.test_cfg.max_per_img'),
        (dict(rcnn=dict(max_per_img=4), rpn=None), {}, 'test_cfg.rcnn.max_per_img'),
        (dict(rcnn=dict(max_per_img=9), rpn=dict(max_per_img=3)), {}, 'cfg.rpn.max'),
        (dict(max_per_img=9), dict(num_queries=4), 'model.num_queries'),
        (dict(max_per_image=4), {}, 'model.test_cfg.max_per_image'),
        (None, dict(rpn_head=SimpleNamespace(num_proposals=3)), 'rpn_head.num_prop'),
        (None, {}, ''),
    ],
)
def test_more_objects_than_detections(test_cfg, attributes, key):
    model, doubts = nn.Module(), []
    vars(model).update(attributes, test_cfg=test_cfg)
    parts = [Annotated(2, 5), Annotated(1)]
    check_objects(Config(), 'val', model, parts, doubts.append)
    assert bool(doubts) == bool(key)
    assert not doubts or ('has 5 objects' in doubts[0] and key in doubts[0])


def test_numbers_without_coco_s_own():
    doubts = []
    metrics = [dict(type='CocoMetric', proposal_nums=(10, 500)), dict(type='Other')]
    cfg = Config(dict(val_evaluator=metrics, test_evaluator=metrics[1]))
    check_objects(cfg, 'test', nn.Identity(), [], pytest.fail)
    check_objects(cfg, 'val', nn.Identity(), [], doubts.append)
    assert 'proposal_nums=(10, 500) lacks 100' in doubts[0]
