"""Scores that hooks watch are those of the validation."""

import pytest
from mmengine.config import Config

from mmlinattn.engine.preflight.scores import check_scores

BOXES = dict(type='CocoMetric', ann_file='a.json', metric='bbox')
MASKS = dict(BOXES, metric=['bbox', 'segm'])
PIXELS = dict(type='IoUMetric')
CLASSES = [dict(type='Accuracy', topk=(1, 5)), dict(type='SingleLabelMetric')]


def config(evaluator, best, scope='mmdet', hooks=()):
    hook = dict(type='CheckpointHook', save_best=best)
    return Config(
        dict(
            default_scope=scope,
            val_evaluator=evaluator,
            default_hooks=dict(checkpoint=hook),
            custom_hooks=list(hooks),
        )
    )


def check(cfg):
    pytest.importorskip(cfg.default_scope + '.evaluation')
    warnings = []
    check_scores(cfg, warnings.append)
    return warnings


@pytest.mark.parametrize(
    'evaluator, best, scope, advice',
    [
        (BOXES, 'bbox_mAP', 'mmdet', "did you mean 'coco/bbox_mAP'"),
        (BOXES, 'coco/segm_mAP', 'mmdet', 'coco/bbox_mAP'),
        (BOXES, ['coco/bbox_mAP', 'coco/bbox_map50'], 'mmdet', "'coco/bbox_mAP_50'"),
        (dict(BOXES, classwise=True), 'bbox_mAP', 'mmdet', "'coco/bbox_mAP'"),
        (dict(type='VOCMetric'), 'coco/bbox_mAP', 'mmdet', 'pascal_voc/*'),
        (PIXELS, 'miou', 'mmseg', "did you mean 'mIoU'"),
        (dict(PIXELS, iou_metrics=['mDice']), 'mIoU', 'mmseg', 'mDice'),
        (CLASSES, 'top1', 'mmpretrain', 'accuracy/*'),
    ],
)
def test_a_score_that_no_metric_has(evaluator, best, scope, advice):
    """MMEngine looks it up after the first validation, and ends the run."""
    with pytest.raises(ValueError, match='save_best=.* is no score') as error:
        check(config(evaluator, best, scope))
    assert advice in str(error.value)


@pytest.mark.parametrize(
    'evaluator, best, scope',
    [
        (BOXES, 'auto', 'mmdet'),
        (BOXES, None, 'mmdet'),
        (BOXES, 'val_loss', 'mmdet'),
        (BOXES, 'coco/bbox_mAP_50', 'mmdet'),
        (dict(BOXES, type='mmdet.CocoMetric'), 'coco/bbox_mAP', 'mmdet'),
        (MASKS, ['coco/bbox_mAP', 'coco/segm_mAP'], 'mmdet'),
        (dict(MASKS, prefix='masks'), 'masks/segm_mAP', 'mmdet'),
        (dict(BOXES, classwise=True), 'coco/cat_precision', 'mmdet'),
        (dict(BOXES, metric_items=['AR@100']), 'coco/bbox_AR@100', 'mmdet'),
        (dict(BOXES, metric='proposal'), 'coco/AR@100', 'mmdet'),
        (dict(type='VOCMetric'), 'pascal_voc/mAP', 'mmdet'),
        ([BOXES, dict(type='OwnMetric')], 'own', 'mmdet'),
        (dict(type='OwnEvaluator', metrics=[BOXES]), 'own', 'mmdet'),
        (dict(type='Evaluator', metrics=[BOXES]), 'coco/bbox_mAP', 'mmdet'),
        (PIXELS, 'mIoU', 'mmseg'),
        (dict(PIXELS, prefix='val', iou_metrics=['mFscore']), 'val/mRecall', 'mmseg'),
        (CLASSES, 'accuracy/top1', 'mmpretrain'),
        (CLASSES, 'single-label/f1-score', 'mmpretrain'),
    ],
)
def test_scores_that_metrics_have(evaluator, best, scope):
    assert check(config(evaluator, best, scope)) == []


def test_early_stopping():
    """It only warns, unless it is strict."""
    hook = dict(type='EarlyStoppingHook', monitor='bbox_mAP')
    (warning,) = check(config(BOXES, 'auto', hooks=[hook]))
    assert warning.startswith("custom_hooks.0.monitor='bbox_mAP' is no score")
    with pytest.raises(ValueError, match=r'custom_hooks\.0'):
        check(config(BOXES, 'auto', hooks=[dict(hook, strict=True)]))
    assert check(config(BOXES, None, hooks=[dict(hook, monitor='coco/bbox_mAP')])) == []
