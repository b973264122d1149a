"""mmdet's detectors on COCO and on Cityscapes."""

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
# mixed precision needs a GPU
MASK_RCNN_FLOAT32 = {**MASK_RCNN, 'optim_wrapper.type': 'OptimWrapper'}
# no more queries than tokens
DINO = {**SHORT, 'model.num_queries': 20, 'model.test_cfg.max_per_img': 20}
MASK2FORMER = {
    'model.test_cfg.max_per_image': 20,
    'train_cfg.max_iters': 4,
    'train_cfg.val_interval': 4,
    'train_cfg.dynamic_intervals': None,
    'default_hooks.checkpoint.interval': 4,
    'default_hooks.logger.interval': 1,
}


def train_and_test(user, config, options, augmented=False):
    training = user.train('mmdet', config, options)
    assert 'trains FROM SCRATCH: pretrained=None' in training.output
    metrics = user.test('mmdet', config, training.checkpoint, options)
    assert metrics == training.metrics
    if augmented:
        flips = user.test('tools', config, training.checkpoint, options, '--tta')
        assert flips.keys() == metrics.keys()
    return metrics


@pytest.mark.modern
def test_mask_rcnn_on_coco(user, configs, quick):
    config = configs / 'soft/mask-rcnn_softpp-t_fpn_1x_coco.py'
    metrics = train_and_test(user, config, quick(config, **MASK_RCNN))
    assert {'coco/bbox_mAP', 'coco/segm_mAP'} <= set(metrics)
    assert metrics['coco/bbox_mAP_50'] > 0


@pytest.mark.full
def test_retinanet_on_coco(user, configs, quick):
    config = configs / 'soft/retinanet_softpp-t_fpn_1x_coco.py'
    metrics = train_and_test(user, config, quick(config, **RETINANET), augmented=True)
    assert metrics['coco/bbox_mAP_50'] > 0


@pytest.mark.full
@pytest.mark.parametrize(
    'name, options',
    [
        ('soft/mask-rcnn_softpp-t_fpn_1x_cityscapes', MASK_RCNN),
        ('soft/mask-rcnn_softpp-s_fpn_lsj-100e_coco', MASK_RCNN),
        ('elfatt/mask-rcnn_swin-t-elfatt_fpn_ms-crop-3x_coco', MASK_RCNN_FLOAT32),
        pytest.param(
            'soft/dino-4scale_softpp-s_1x_coco', DINO, marks=pytest.mark.modern
        ),
        pytest.param(
            'elfatt/mask2former_swin-t-elfatt_lsj-50e_coco',
            MASK2FORMER,
            marks=pytest.mark.modern,
        ),
    ],
)
def test_other_recipes(user, configs, quick, name, options):
    config = configs / f'{name}.py'
    metrics = train_and_test(user, config, quick(config, **options))
    assert ('coco/segm_mAP' in metrics) == ('mask' in name)
    assert ('cityscapes/mAP' in metrics) == ('mask' in name and 'cityscapes' in name)
