"""Builds data loaders before a run begins, and reads the first sample of their data."""

import copy
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np
from mmengine.config import Config
from mmengine.runner import Runner
from torch import nn

from mmlinattn.engine.part_errors import NO_SAMPLES, part
from mmlinattn.weights.conversion import some

# where the three libraries have the head that knows the number of classes
HEADS = ('head', 'bbox_head', 'roi_head.bbox_head', 'decode_head')


def build_loader(cfg: Config, name: str, model: nn.Module) -> Any:
    """Builds a data loader, and reads the first sample of its dataset."""
    section = f'{name}_dataloader'
    with part(section):
        if not isinstance(cfg[section], dict) or 'dataset' not in cfg[section]:
            raise ValueError('it has no dataset')
    with part(f'{section}{annotations(cfg[section].dataset)}'):
        loader = Runner.build_dataloader(copy.deepcopy(cfg[section]), seed=0)
    dataset = loader.dataset
    with part(f'{section}.dataset'):
        if not len(dataset):
            raise ValueError(NO_SAMPLES)
        if getattr(dataset, 'cat_ids', None) == []:
            raise ValueError(
                'its annotations have none of the classes '
                f'{some(dataset.metainfo["classes"])}: name theirs in '
                'metainfo=dict(classes=...)'
            )
        check_classes(dataset, count_classes(model))
    with part(f'{section}.dataset, first sample'):
        check_label_map(dataset[0], count_classes(model))
    return loader


def annotations(dataset: Any) -> str:
    """A dataset's annotation file for an error, if it has one."""
    while isinstance(dataset, dict) and 'dataset' in dataset:
        dataset = dataset['dataset']
    path = dataset.get('ann_file') if isinstance(dataset, dict) else None
    return f', ann_file={path!r}' if path else ''


def count_classes(model: nn.Module) -> Optional[int]:
    """The number of classes of a model of one of the libraries, or None."""
    for path in HEADS:
        head: Any = model
        for name in path.split('.'):
            head = getattr(head, name, None)
        if isinstance(head, nn.ModuleList):
            head = head[-1]
        if isinstance(getattr(head, 'num_classes', None), int):
            return head.num_classes
    return None


def check_classes(dataset: Any, num_classes: Optional[int]) -> None:
    """Raises an error for labels that a model has no output for.

    Raises:
        ValueError: If there are such labels.
    """
    if num_classes is None:
        return
    meta = getattr(dataset, 'metainfo', {})
    largest = len(meta.get('thing_classes') or meta.get('classes') or ()) - 1
    if hasattr(dataset, 'get_gt_labels'):
        label = dataset.get_data_info(0).get('gt_label')
        if not isinstance(label, (int, np.integer)):
            return  # several labels, or none
        largest = int(dataset.get_gt_labels().max())
    if largest >= num_classes:
        raise ValueError(
            f'labels go up to {largest}, but the head has num_classes={num_classes}, '
            f'for labels 0 to {num_classes - 1}'
        )


def check_label_map(sample: Any, num_classes: Optional[int]) -> None:
    """Raises an error for a label map that a model has no outputs for.

    Raises:
        ValueError: If it has such a label.
    """
    found = sample.get('data_samples') if isinstance(sample, Mapping) else None
    target = getattr(found, 'gt_sem_seg', None)
    if target is None or num_classes is None:
        return
    labels = target.data[target.data != 255]  # ignored by all losses
    if labels.numel() and int(labels.max()) >= num_classes:
        raise ValueError(
            f'its label map has {int(labels.max())}, but the head has '
            f'num_classes={num_classes}, for labels 0 to {num_classes - 1}, and 255 '
            'is ignored'
        )
