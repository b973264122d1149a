"""Compares the labels and names of a config's data sets with a model's head."""

from collections.abc import Callable
from typing import Any

import torch
from mmengine.config import Config
from torch import nn

from .building import core_of, error_in
from .evaluators import check_files
from .files import check_photos
from .names import check_names, named_classes, shown
from .objects import check_objects
from .outlines import check_outlines
from .photos import check_channels_of, check_smallest, check_windows
from .samples import all_labels, first_sample, labels_of, parts_of, read_first
from .trackers import check_tracker


def check_data(
    cfg: Config, name: str, model: nn.Module, warn: Callable[[str], object]
) -> Any:
    """Read the first sample of a config's dataset, 'train', 'val' or 'test', and
    compare its labels with the model's head; ``warn`` takes warnings. It writes
    nothing, and returns the dataset.

    Raises:
        ValueError: If the sample can't be read, or the labels do not fit.
    """
    key, core = f'{name}_dataloader', core_of(model)
    check_tracker(cfg, name, model)
    with error_in(cfg, key), named_classes(cfg[key]):
        dataset, sample = first_sample(cfg[key], lambda text: warn(f'{key}, {text}'))
    parts = parts_of(dataset)
    check_channels_of(key, model, sample, warn)
    check_outlines(key, parts, sample)
    for part in parts:
        check_photos(key, part, warn)
        check_smallest(cfg, key, model, part)
    if name != 'train':
        check_windows(key, model, warn)
        check_objects(cfg, name, model, parts, warn)
        check_files(cfg, name, parts, warn)
    # a model with a language model reads the names themselves
    may_differ = name != 'train' or hasattr(model, 'language_model')
    check_names(key, parts, warn if may_differ else None)
    head = find_head(core)
    # a head of one class may detect objects of any class
    if head is not None and head.num_classes != 1:
        for part in parts if name == 'train' else parts[:1]:
            check_number(key, part, head, warn, may_differ)
        labels = labels_of_parts(cfg, key, parts, sample, warn)
        if name == 'train':
            check_labels(key, dataset, labels, head, warn)
    return dataset


def check_number(
    key: str, part: Any, head: Any, warn: Callable[[str], object], may_differ: bool
) -> None:
    """Raise a ValueError for a data set with more classes than a head has outputs,
    unless no object is of the others or they ``may_differ``; ``warn`` takes other
    differences. Names of a panoptic data set are those of things and stuff."""
    meta = getattr(part, 'metainfo', {})
    names = meta.get('classes') or ()
    if not names or 'thing_classes' in meta or len(names) == head.num_classes:
        return
    text = (
        f'{key}: it has {len(names)} classes, but the head has '
        f'num_classes={head.num_classes}'
    )
    if len(names) > outputs_of(head) and not may_differ and uses_all(part, head):
        raise ValueError(
            f'{text}, so it never learns {shown(names[head.num_classes :])}: set '
            f"num_classes={len(names)} in the model's heads, or the classes to learn "
            'in metainfo=dict(classes=...)'
        )
    warn(text)


def uses_all(part: Any, head: Any) -> bool:
    """Return whether photos of a data set may have labels that a head has no output
    for."""
    labels = all_labels(part)
    return labels is None or max(labels, default=0) >= head.num_classes


def outputs_of(head: Any) -> int:
    """Return the number of classes that a head tells apart. A segmentor's may have one
    output for two classes."""
    if getattr(head, 'loss_decode', None) is None:
        return head.num_classes
    return max(getattr(head, 'out_channels', head.num_classes), 2)


def labels_of_parts(
    cfg: Config, key: str, parts: list[Any], first: Any, warn: Callable[[str], object]
) -> set[int]:
    """Return the labels of the first sample of each part of a data set, of which
    ``first`` is that of the first part."""
    labels = labels_of(parts[0], first)
    for part in parts[1:]:
        with error_in(cfg, key):
            labels |= labels_of(part, read_first(part, warn) if len(part) else None)
    return labels


def check_labels(
    key: str, dataset: Any, labels: set[int], head: Any, warn: Callable[[str], object]
) -> None:
    """Raise a ValueError for labels of a training that a head has no output for;
    ``warn`` takes those of a loss that takes any label, and masks of 0 and 255."""
    if 255 in labels and labels <= {0, 255}:
        warn_of_ignored(key, dataset, head, warn)
    outputs, loss = outputs_of(head), getattr(head, 'loss_decode', None)
    largest = max(labels - {getattr(head, 'ignore_index', None)}, default=0)
    if largest < outputs:
        return
    text = (
        f'{key}: its labels go up to {largest}, but the head has '
        f'num_classes={head.num_classes}'
    )
    if loss is None or 'CrossEntropyLoss' in repr(loss):
        raise ValueError(f'{text}, labels 0 to {outputs - 1}')
    warn(text)  # Dice losses take any label


def warn_of_ignored(
    key: str, dataset: Any, head: Any, warn: Callable[[str], object]
) -> None:
    """Warn of masks of 0 and 255 for a head that ignores 255: the first samples have no
    other labels."""
    ignored = getattr(head, 'ignore_index', None)
    maps = []
    for i in range(min(len(dataset), 8)):
        samples = (dataset[i] or {}).get('data_samples')
        label_map = getattr(getattr(samples, 'gt_sem_seg', None), 'data', None)
        if ignored != 255 or label_map is None:
            return
        maps.append(label_map.flatten())
    if len(maps) < 2:  # one photo may have one class
        return
    pixels = torch.cat(maps)
    share = (pixels == ignored).double().mean().item()
    if share and set(pixels.unique().tolist()) <= {0, ignored}:
        warn(
            f'{key}: the labels of its first {len(maps)} samples are 0 and 255 alone, '
            f'and {share:.0%} of the pixels are ignored (ignore_index=255): nothing is '
            'learned but class 0. If 255 is a class, write its label in place of it'
        )


def find_head(model: nn.Module) -> Any:
    """Return the head of a libraries' model that has the number of classes."""
    for owner in (getattr(model, 'roi_head', None), model):
        for name in ('head', 'bbox_head', 'decode_head'):
            head = getattr(owner, name, None)
            head = head[-1] if isinstance(head, nn.ModuleList) else head
            if isinstance(getattr(head, 'num_classes', None), int):
                return head
    return None
