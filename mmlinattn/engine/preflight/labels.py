"""Compares the labels and names of a config's data sets with a model's head."""

from collections.abc import Callable
from typing import Any, Optional

import torch
from mmengine.config import Config
from torch import nn

from .building import error_in
from .objects import check_objects
from .outlines import check_outlines
from .photos import check_channels_of, check_smallest, check_windows
from .samples import first_sample, labels_of, parts_of, read_first


def check_data(
    cfg: Config, name: str, model: nn.Module, warn: Callable[[str], object]
) -> None:
    """Reads the first sample of a config's dataset, 'train', 'val' or 'test', and
    compares its labels with the model's head; ``warn`` takes warnings. It writes
    nothing.

    Raises:
        ValueError: If the sample can't be read, or the labels do not fit.
    """
    key, head = f'{name}_dataloader', find_head(model)
    with error_in(cfg, key):
        dataset, sample = first_sample(cfg[key], lambda text: warn(f'{key}, {text}'))
    parts = parts_of(dataset)
    check_channels_of(key, model, sample, warn)
    check_outlines(key, parts, sample)
    for part in parts:
        check_smallest(cfg, key, model, part)
    if name != 'train':
        check_windows(key, model, warn)
        check_objects(cfg, name, model, parts, warn)
    # a model with a language model reads the names themselves
    may_differ = name != 'train' or hasattr(model, 'language_model')
    check_names(key, parts, warn if may_differ else None)
    head = find_head(model)
    # a head of one class may detect objects of any class
    if head is None or head.num_classes == 1:
        return
    warn_of_names(key, parts[0], head, warn)
    labels = labels_of_parts(cfg, key, parts, sample, warn)
    if name != 'train':
        return
    if 255 in labels and labels <= {0, 255}:
        warn_of_ignored(key, dataset, head, warn)
    check_labels(key, labels, head, warn)


def warn_of_names(
    key: str, part: Any, head: Any, warn: Callable[[str], object]
) -> None:
    """Warns of a data set with another number of classes than a head has. Names of a
    panoptic data set are those of things and stuff."""
    meta = getattr(part, 'metainfo', {})
    names = meta.get('classes') or ()
    if names and 'thing_classes' not in meta and len(names) != head.num_classes:
        warn(
            f'{key}: it has {len(names)} classes, but the head has '
            f'num_classes={head.num_classes}'
        )


def labels_of_parts(
    cfg: Config, key: str, parts: list[Any], first: Any, warn: Callable[[str], object]
) -> set[int]:
    """The labels of the first sample of each part of a data set, of which ``first`` is
    that of the first part."""
    labels = labels_of(parts[0], first)
    for part in parts[1:]:
        with error_in(cfg, key):
            labels |= labels_of(part, read_first(part, warn) if len(part) else None)
    return labels


def check_labels(
    key: str, labels: set[int], head: Any, warn: Callable[[str], object]
) -> None:
    """Raises a ValueError for labels of a training that a head has no output for;
    ``warn`` takes those of a loss that takes any label."""
    outputs, loss = head.num_classes, getattr(head, 'loss_decode', None)
    if loss is not None:  # a segmentor's head may have one output for two classes
        outputs = max(getattr(head, 'out_channels', outputs), 2)
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


def check_names(
    key: str, parts: list[Any], warn: Optional[Callable[[str], object]]
) -> None:
    """Raises a ValueError for sets without any object of their classes, and for sets
    that are used as one and give a label two names, which ``warn`` takes instead."""
    known: Any = ()
    for i, part in enumerate(parts, 1):
        place = f'{key}: ' if len(parts) == 1 else f'{key}, set {i}: '
        meta = getattr(part, 'metainfo', None)
        category_ids = getattr(part, 'cat_ids', None)
        names = (meta.get('classes') if isinstance(meta, dict) else None) or ()
        if names and category_ids is not None and not len(category_ids):
            raise ValueError(
                f'{place}its annotations have none of its {len(names)} classes: name '
                'theirs in metainfo=dict(classes=...)'
            )
        if isinstance(names, str):
            continue
        if any(one != other for one, other in zip(known, names)):
            text = (
                f'{place}its classes are {shown(names)}, those of another set are '
                f'{shown(known)}: a label means two things. Give all sets the same '
                'list in metainfo=dict(classes=...)'
            )
            if warn is None:
                raise ValueError(text)
            warn(text)
        known = known or names


def warn_of_ignored(
    key: str, dataset: Any, head: Any, warn: Callable[[str], object]
) -> None:
    """Warns of masks of 0 and 255 for a head that ignores 255: the first samples have
    no other labels."""
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


def shown(names: Any) -> str:
    """The first names of a list."""
    more = ', ...' if len(names) > 6 else ''
    return f'({", ".join(map(str, names[:6]))}{more})'


def find_head(model: nn.Module) -> Any:
    """The head of a libraries' model that has the number of classes."""
    for owner in (getattr(model, 'roi_head', None), model):
        for name in ('head', 'bbox_head', 'decode_head'):
            head = getattr(owner, name, None)
            head = head[-1] if isinstance(head, nn.ModuleList) else head
            if isinstance(getattr(head, 'num_classes', None), int):
                return head
    return None
