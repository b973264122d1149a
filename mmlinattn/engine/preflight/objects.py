"""Compares the number of objects in photos with the detections that are kept."""

from collections.abc import Callable
from typing import Any

from mmengine.config import Config

# Photos whose objects are counted.
MOST_PHOTOS = 5000
# Detections of a class in a photo that COCO's average precision looks at.
COCO_LIMIT = 100


def check_objects(
    cfg: Config, name: str, model: Any, parts: list[Any], warn: Callable[[str], object]
) -> None:
    """Warn of photos with more objects than a detector keeps, and of an evaluation
    whose number of detections leaves no average precision."""
    limits = limits_of(model)
    most = max((most_objects(part) for part in parts), default=0)
    if limits and most > min(limits.values()):
        key = min(limits, key=lambda key: limits[key])
        warn(
            f'{name}_dataloader: a photo has {most} objects, of which the model finds '
            f'{limits[key]} at most: set {key} to {2 * most}'
        )
    metrics = cfg.get(f'{name}_evaluator') or []
    for metric in metrics if isinstance(metrics, (list, tuple)) else [metrics]:
        numbers = metric.get('proposal_nums') if isinstance(metric, dict) else None
        if numbers and COCO_LIMIT not in numbers:
            warn(
                f'{name}_evaluator.proposal_nums={tuple(numbers)} lacks 100, at which '
                'COCO computes mAP: it will be -1'
            )


def limits_of(model: Any) -> dict[str, int]:
    """Return what limits the objects that a detector finds in a photo, by keys of
    configs."""
    cfg = getattr(model, 'test_cfg', None) or {}
    limits = {}
    if cfg.get('rcnn'):
        limits['model.test_cfg.rcnn.max_per_img'] = cfg['rcnn'].get('max_per_img')
        rpn = cfg.get('rpn') or {}
        limits['model.test_cfg.rpn.max_per_img'] = rpn.get('max_per_img')
    for key in ('max_per_img', 'max_per_image'):
        limits[f'model.test_cfg.{key}'] = cfg.get(key)
    limits['model.num_queries'] = getattr(model, 'num_queries', None)
    for part, key in dict(
        panoptic_head='num_queries', rpn_head='num_proposals'
    ).items():
        limits[f'model.{part}.{key}'] = getattr(getattr(model, part, None), key, None)
    return {
        key: number
        for key, number in limits.items()
        if isinstance(number, int) and number > 0
    }


def most_objects(dataset: Any) -> int:
    """Return the greatest number of objects that a photo of a data set has, without
    those that an evaluation ignores."""
    most = 0
    if hasattr(dataset, 'get_data_info'):
        for i in range(min(len(dataset), MOST_PHOTOS)):
            objects = dataset.get_data_info(i).get('instances')
            if not isinstance(objects, (list, tuple)):
                break
            count = sum(not (entry.get('ignore_flag') or 0) for entry in objects)
            most = max(most, count)
    return most
