"""mmdet's RetinaNet and Mask R-CNN on COCO and on Cityscapes."""

import pytest

# Twelve iterations, and boxes of any score: what has hardly begun to learn is sure of
# nothing, and without boxes there is no AP.
SHORT = {
    'train_cfg.max_epochs': 3,
    'train_cfg.val_interval': 3,
    'default_hooks.checkpoint.interval': 3,
    'param_scheduler.0.end': 2,
}
RETINANET = {**SHORT, 'model.test_cfg.score_thr': 0}
MASK_RCNN = {
    **SHORT,
    'model.train_cfg.rpn_proposal.nms_pre': 100,
    'model.train_cfg.rpn_proposal.max_per_img': 20,
    'model.train_cfg.rcnn.sampler.num': 16,
    'model.test_cfg.rpn.nms_pre': 100,
    'model.test_cfg.rpn.max_per_img': 20,
    'model.test_cfg.rcnn.max_per_img': 20,
    'model.test_cfg.rcnn.score_thr': 0,
}


def train_and_test(user, config, options):
    training = user.train('mmdet', config, options)
    assert 'trains FROM SCRATCH: pretrained=None' in training.output
    metrics = user.test('mmdet', config, training.checkpoint, options)
    assert metrics == training.metrics
    return metrics


@pytest.mark.modern
def test_mask_rcnn_on_coco(user, configs, quick):
    metrics = train_and_test(
        user,
        configs / 'soft/mask-rcnn_softpp-t_fpn_1x_coco.py',
        quick('coco', **MASK_RCNN),
    )
    assert {'coco/bbox_mAP', 'coco/segm_mAP'} <= set(metrics)


def test_retinanet_on_coco(user, configs, quick):
    metrics = train_and_test(
        user,
        configs / 'soft/retinanet_softpp-t_fpn_1x_coco.py',
        quick('coco', **RETINANET),
    )
    assert metrics['coco/bbox_mAP_50'] > 0


def test_mask_rcnn_on_cityscapes(user, configs, quick):
    metrics = train_and_test(
        user,
        configs / 'soft/mask-rcnn_softpp-t_fpn_1x_cityscapes.py',
        quick('cityscapes_instances', **MASK_RCNN),
    )
    assert {'coco/bbox_mAP', 'coco/segm_mAP', 'cityscapes/mAP'} <= set(metrics)


@pytest.mark.full
def test_retinanet_on_cityscapes(user, configs, quick):
    metrics = train_and_test(
        user,
        configs / 'soft/retinanet_softpp-t_fpn_1x_cityscapes.py',
        quick('cityscapes_boxes', **RETINANET),
    )
    assert metrics['coco/bbox_mAP_50'] > 0


@pytest.mark.full
def test_3x_of_older_family(user, configs, quick):
    metrics = train_and_test(
        user,
        configs / 'soft/retinanet_soft-t_fpn_3x_coco.py',
        quick('coco_3x', **RETINANET),
    )
    assert metrics['coco/bbox_mAP_50'] > 0


@pytest.mark.parametrize(
    'backbone',
    [
        'swin-s-featscale_fpn',
        pytest.param('deit-s12-attnscale_sfp', marks=pytest.mark.full),
    ],
)
def test_mask_rcnn_against_oversmoothing(user, configs, quick, backbone):
    config = configs / f'antioversmoothing/mask-rcnn_{backbone}_1x_coco.py'
    metrics = train_and_test(user, config, quick('coco', **MASK_RCNN))
    assert {'coco/bbox_mAP', 'coco/segm_mAP'} <= set(metrics)


@pytest.mark.parametrize(
    'backbone',
    ['swin-t-elfatt', pytest.param('cswin-b-elfatt', marks=pytest.mark.full)],
)
def test_mask_rcnn_with_elfatt(user, configs, quick, backbone):
    metrics = train_and_test(
        user,
        configs / f'elfatt/mask-rcnn_{backbone}_fpn_1x_coco.py',
        quick('coco', **MASK_RCNN),
    )
    assert {'coco/bbox_mAP', 'coco/segm_mAP'} <= set(metrics)


@pytest.mark.full
def test_mask_rcnn_with_elfatt_on_cityscapes(user, configs, quick):
    metrics = train_and_test(
        user,
        configs / 'elfatt/mask-rcnn_cswin-t-elfatt_fpn_1x_cityscapes.py',
        quick('cityscapes_instances', **MASK_RCNN),
    )
    assert {'coco/bbox_mAP', 'coco/segm_mAP', 'cityscapes/mAP'} <= set(metrics)


@pytest.mark.full
@pytest.mark.parametrize('backbone', ['swin-b-elfatt', 'cswin-t-elfatt'])
def test_retinanet_with_elfatt(user, configs, quick, backbone):
    metrics = train_and_test(
        user,
        configs / f'elfatt/retinanet_{backbone}_fpn_1x_coco.py',
        quick('coco', **RETINANET),
    )
    assert metrics['coco/bbox_mAP_50'] > 0


@pytest.mark.parametrize(
    'backbone',
    [
        'deit-s12-attnscale_sfp',
        pytest.param('swin-s-featscale_fpn', marks=pytest.mark.full),
    ],
)
def test_retinanet_against_oversmoothing(user, configs, quick, backbone):
    config = configs / f'antioversmoothing/retinanet_{backbone}_1x_coco.py'
    metrics = train_and_test(user, config, quick('coco', **RETINANET))
    assert metrics['coco/bbox_mAP_50'] > 0
