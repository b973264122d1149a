"""A training and a test of every kind of recipe, on a few made-up images."""

import json
import math
from pathlib import Path

import pytest
import torch
from our_configs import build

from mmlinattn.utils import load_config
from mmlinattn.weights import load_pretrained

# boxes of any score: what has hardly begun to learn is sure of nothing
MASK_RCNN = {
    'model.train_cfg.rpn_proposal.nms_pre': 100,
    'model.train_cfg.rpn_proposal.max_per_img': 20,
    'model.train_cfg.rcnn.sampler.num': 16,
    'model.test_cfg.rpn.nms_pre': 100,
    'model.test_cfg.rpn.max_per_img': 20,
    'model.test_cfg.rcnn.max_per_img': 20,
    'model.test_cfg.rcnn.score_thr': 0,
}
# no more queries than tokens
DINO = {'model.num_queries': 20, 'model.test_cfg.max_per_img': 20}
MASK2FORMER = {'model.test_cfg.max_per_image': 20, 'train_cfg.dynamic_intervals': None}
BOXES, MASKS, SEGMENTS = {'coco/bbox_mAP'}, {'coco/segm_mAP'}, {'aAcc', 'mIoU', 'mAcc'}
CITIES = BOXES | MASKS | {'cityscapes/mAP'}
RECIPES = {
    'soft/mask-rcnn_softpp-t_fpn_1x_coco': (MASK_RCNN, BOXES | MASKS),
    'soft/upernet_softpp-t_1x_ade20k-512x512': ({}, SEGMENTS),
    'soft/mask-rcnn_softpp-t_fpn_1x_cityscapes': (MASK_RCNN, CITIES),
    'soft/mask-rcnn_softpp-s_fpn_lsj-100e_coco': (MASK_RCNN, BOXES | MASKS),
    'soft/dino-4scale_softpp-s_1x_coco': (DINO, BOXES),
    'elfatt/mask2former_swin-t-elfatt_lsj-50e_coco': (MASK2FORMER, MASKS),
    'soft/upernet_softpp-t_1x_cityscapes-768x768': ({}, SEGMENTS),
}
OTHERS = pytest.mark.full, pytest.mark.openmmlab
MARKS = {
    'soft/mask-rcnn_softpp-t_fpn_1x_coco': (),
    'soft/upernet_softpp-t_1x_ade20k-512x512': pytest.mark.modern_full,
    'soft/dino-4scale_softpp-s_1x_coco': pytest.mark.full,
}


def train(user, *args):
    """The output of a training, its last checkpoint, and its last metrics."""
    folder, output = user.use('train', *args)
    log = max(folder.glob('*/vis_data/scalars.json')).read_text()
    log = [json.loads(line) for line in log.splitlines()]
    losses = [line['loss'] for line in log if 'loss' in line]
    assert losses and all(map(math.isfinite, losses))
    checkpoint = Path((folder / 'last_checkpoint').read_text())
    return output, checkpoint, metrics_of(log[-1])


def metrics_of(line):
    metrics = {k: x for k, x in line.items() if k not in ('time', 'data_time', 'step')}
    assert all(map(math.isfinite, metrics.values())), line
    return metrics


def train_and_test(user, *args):
    output, checkpoint, metrics = train(user, *args)
    folder, tested = user.use('test', *args, checkpoint)
    assert f'Load checkpoint from {checkpoint}' in tested
    assert 'size mismatch' not in tested and 'in source state_dict' not in tested
    (report,) = folder.glob('*/*.json')
    assert metrics_of(json.loads(report.read_text())) == metrics
    return output, checkpoint, metrics


@pytest.mark.parametrize(
    'name', [pytest.param(x, marks=MARKS.get(x, OTHERS)) for x in RECIPES]
)
def test_detection_and_segmentation(user, configs, quick, modern, name):
    options, metrics = RECIPES[name]
    config, library = configs / f'{name}.py', 'mmdet'
    if metrics == SEGMENTS:  # onedl's mim can't resolve `mmseg::`, our tool does
        library = 'tools' if modern else 'mmsegmentation'
    # the test of a segmentor is the library's, as that of a detector
    run = train if metrics == SEGMENTS else train_and_test
    output, _, results = run(user, library, config, quick(config, **options))
    assert 'trains FROM SCRATCH: pretrained=None' in output
    assert metrics <= results.keys()


@pytest.mark.modern_full
def test_a_classifier_is_the_start_of_a_detector(user, configs, quick):
    config = configs / 'soft/softpp-t_in1k.py'
    # the moving average, which is tested, follows at once
    options = quick(config, **{'custom_hooks.0.momentum': 0.5})
    _, classifier, metrics = train_and_test(user, 'mmpretrain', config, options)
    assert 'accuracy/top5' in metrics
    config = configs / 'soft/retinanet_softpp-t_fpn_1x_coco.py'
    backbone = build(load_config(str(config))).backbone
    load_pretrained(backbone, str(classifier))
    trained = torch.load(classifier, map_location='cpu', weights_only=False)
    trained = trained['state_dict']
    assert all(
        torch.equal(trained[f'backbone.{key}'], value)
        for key, value in backbone.named_parameters()
    )
