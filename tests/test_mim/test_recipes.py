"""A training and a test of every kind of recipe, on a few made-up images."""

import pytest
import torch

# boxes of any score: what has hardly begun to learn is sure of nothing
RETINANET = {'model.test_cfg.score_thr': 0}
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
MARKS = {
    'soft/mask-rcnn_softpp-t_fpn_1x_coco': pytest.mark.modern,
    'soft/upernet_softpp-t_1x_ade20k-512x512': (
        pytest.mark.modern,
        pytest.mark.modern_full,
    ),
    'soft/dino-4scale_softpp-s_1x_coco': (pytest.mark.full, pytest.mark.modern),
}


def train_and_test(user, library, config, options):
    training = user.train(library, config, options)
    metrics = user.test(library, config, training.checkpoint, options)
    assert metrics == training.metrics
    return training


@pytest.mark.parametrize(
    'name', [pytest.param(x, marks=MARKS.get(x, pytest.mark.full)) for x in RECIPES]
)
def test_detection_and_segmentation(user, configs, quick, modern, name):
    options, metrics = RECIPES[name]
    config, library = configs / f'{name}.py', 'mmdet'
    if metrics == SEGMENTS:  # onedl's mim can't resolve `mmseg::`, our tool does
        library = 'tools' if modern else 'mmsegmentation'
    training = train_and_test(user, library, config, quick(config, **options))
    assert 'trains FROM SCRATCH: pretrained=None' in training.output
    assert metrics <= {*training.metrics}


def weights(checkpoint):
    """Weights of the backbone that an optimizer changes."""
    state = torch.load(checkpoint, map_location='cpu', weights_only=False)['state_dict']
    return {
        name: value
        for name, value in state.items()
        if name.startswith('backbone.')
        and 'running' not in name
        and value.is_floating_point()
    }


@pytest.mark.modern
@pytest.mark.modern_full
def test_a_classifier_is_the_start_of_a_detector(user, configs, quick):
    config = configs / 'soft/softpp-t_in1k.py'
    # the moving average, which is tested, follows at once
    options = quick(config, **{'custom_hooks.0.momentum': 0.5})
    trained = train_and_test(user, 'mmpretrain', config, options)
    assert 'accuracy/top5' in trained.metrics
    config = configs / 'soft/retinanet_softpp-t_fpn_1x_coco.py'
    options = {**RETINANET, 'optim_wrapper.optimizer.lr': 0}
    options = quick(config, **options, pretrained=trained.checkpoint)
    detector = user.train('mmdet', config, options)
    assert 'trains FROM SCRATCH' not in detector.output
    before, after = weights(trained.checkpoint), weights(detector.checkpoint)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
