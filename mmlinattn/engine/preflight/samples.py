"""Reads samples of a config's data sets, inside of wrappers, too."""

import copy
from collections.abc import Callable
from typing import Any, Optional

import numpy as np
from mmengine.config import Config
from mmengine.registry import DATASETS
from torch.utils.data import IterableDataset

from .building import LIBRARY_ERRORS

LIBRARIES = ('mmdet', 'mmengine', 'mmpretrain', 'mmseg')
# Photos whose labels are read.
MOST_LABELS = 20_000


def first_sample(cfg: Config, warn: Callable[[str], object]) -> tuple[Any, Any]:
    """Return the dataset of a data loader, and its first sample or None."""
    dataset = cfg.dataset
    if isinstance(dataset, dict):
        dataset = DATASETS.build(copy.deepcopy(dataset))
    if isinstance(dataset, IterableDataset):
        return dataset, None
    if not len(dataset):
        raise ValueError(
            'there are no samples: check annotations, classes and filter_cfg'
        )
    return dataset, read_first(dataset, warn)


def read_first(dataset: Any, warn: Callable[[str], object]) -> Any:
    """Return the first sample of a dataset, or None."""
    try:
        return dataset[0]
    except LIBRARY_ERRORS as error:
        if type(dataset).__module__.partition('.')[0] in LIBRARIES:
            raise
        warn(f'first sample: {error}')  # a run may prepare a dataset of one's own
        return None


def parts_of(dataset: Any) -> list[Any]:
    """Return the sets that wrappers such as ConcatDataset and RepeatDataset are
    around."""
    inner = getattr(dataset, 'datasets', None)
    if isinstance(inner, (list, tuple)) and inner:
        return [part for each in inner for part in parts_of(each)]
    inner = getattr(dataset, 'dataset', None)
    if inner is not None and hasattr(inner, '__getitem__'):
        return parts_of(inner)
    return [dataset]


def labels_of(dataset: Any, sample: Any) -> set[int]:
    """Return labels of the first and the last image of a classifier's dataset, or those
    of a sample of a detector's or a segmentor's."""
    if hasattr(dataset, 'get_gt_labels'):
        ends = (dataset.get_data_info(i).get('gt_label') for i in (0, len(dataset) - 1))
        return {int(label) for label in ends if isinstance(label, (int, np.integer))}
    samples = sample.get('data_samples') if isinstance(sample, dict) else None
    for name, part in (('gt_instances', 'labels'), ('gt_sem_seg', 'data')):
        labels = getattr(getattr(samples, name, None), part, None)
        if labels is not None:
            return set(labels.unique().tolist())
    return set()


def all_labels(dataset: Any) -> Optional[set[int]]:
    """Return labels of the photos of a classifier's or a detector's dataset, of a large
    one those of some; None of another one, whose labels are in files."""
    if not hasattr(dataset, 'get_data_info') or not len(dataset):
        return None
    labels = set()
    for i in range(0, len(dataset), -(-len(dataset) // MOST_LABELS)):
        info = dataset.get_data_info(i)
        entries = [info] if 'gt_label' in info else info.get('instances')
        if not isinstance(entries, (list, tuple)):
            return None
        for entry in entries:
            label = entry.get('gt_label', entry.get('bbox_label'))
            labels |= {*np.atleast_1d([] if label is None else label).tolist()}
    return labels
