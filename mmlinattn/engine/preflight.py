"""Checks before a run that MMEngine makes late or not at all: model, data, labels."""

import copy
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from itertools import combinations
from typing import Any, Optional

import numpy as np
import torch
from mmengine.config import Config
from mmengine.registry import DATASETS, MODELS, DefaultScope
from torch import nn
from torch.utils.data import IterableDataset

from mmlinattn.models.backbones.base import BaseBackbone
from mmlinattn.utils.faults import is_own_fault
from mmlinattn.utils.quiet import quiet
from mmlinattn.weights import DownloadError

# Errors of the libraries for a config that can't be built, or can't run at a size.
LIBRARY_ERRORS = (
    *(AssertionError, AttributeError, ImportError, LookupError, MemoryError, OSError),
    *(RuntimeError, SyntaxError, TypeError, ValueError),
)
LIBRARIES = ('mmdet', 'mmengine', 'mmpretrain', 'mmseg')


@contextmanager
def error_in(cfg: Config, key: str) -> Iterator[None]:
    """Builds in a config's scope, without the libraries' prints, and puts a key of the
    config before their errors; a fault of ours stays as it is."""
    scope = DefaultScope.overwrite_default_scope(cfg.get('default_scope') or 'mmengine')
    try:
        with quiet(), redirect_stdout(io.StringIO()), scope:
            yield
    except DownloadError:  # of weights that a model reads when it is built
        raise
    except LIBRARY_ERRORS as error:
        if is_own_fault(error):
            raise
        raise ValueError(f'{key}: {type(error).__name__}: {error}') from error


def build_model(cfg: Config) -> nn.Module:
    """The model of a config, on the CPU, without its pretrained weights; a ValueError
    if it can't be built, or its parts do not fit each other."""
    with error_in(cfg, 'model'):
        model = copy.deepcopy(cfg.model)
        if not isinstance(model, nn.Module):
            if cfg.get('data_preprocessor') is not None:
                # building writes into it
                preprocessor = copy.deepcopy(cfg.data_preprocessor)
                model.setdefault('data_preprocessor', preprocessor)
            model = MODELS.build(model)
    check_channels(model)
    return model


def check_channels(model: nn.Module) -> None:
    """Raises a ValueError for a neck or a segmentor's heads that take other channels
    than the maps of one of our backbones have."""
    backbone: Any = getattr(model, 'backbone', None)
    maps = backbone.feature_channels if isinstance(backbone, BaseBackbone) else ()
    neck = getattr(model, 'neck', None)
    names = ('decode_head', 'auxiliary_head') if neck is None else ('neck',)
    for name in names if maps else ():
        parts = getattr(model, name, None)
        for part in parts if isinstance(parts, nn.ModuleList) else [parts]:
            wanted = getattr(part, 'in_channels', None)
            index = getattr(part, 'in_index', None)
            if isinstance(wanted, int) and isinstance(index, int):
                wanted, index = [wanted], [index]
            taken = range(len(maps)) if index is None else index
            if isinstance(wanted, (list, tuple)) and (
                max(taken) >= len(maps) or [*wanted] != [maps[i] for i in taken]
            ):
                raise ValueError(
                    f'model.{name} has in_channels={wanted} and in_index={[*taken]}, '
                    f'but the maps of the backbone have {list(maps)} channels'
                    f'{advise_on_maps(name, part, backbone)}'
                )


def advise_on_maps(name: str, part: Any, backbone: Any) -> str:
    """What to set where a neck or a head takes other maps than a backbone returns."""
    maps, wanted = list(backbone.feature_channels), part.in_channels
    index: Any = getattr(part, 'in_index', None)
    if isinstance(wanted, int):
        one = index if index in range(-len(maps), len(maps)) else len(maps) - 1
        return f': set model.{name}.in_index={one} and in_channels={maps[one]}'
    if index is not None:
        several = [i for i in index if i in range(-len(maps), len(maps))]
        channels = [maps[i] for i in several]
        return f': set model.{name}.in_index={several} and in_channels={channels}'
    if len(wanted) >= len(maps):
        return f': set model.{name}.in_channels={maps}'
    # maps with the wanted channels, otherwise the last ones
    places = combinations(range(len(maps)), len(wanted))
    last = tuple(range(len(maps)))[-len(wanted) :]
    chosen = next((x for x in places if [maps[i] for i in x] == [*wanted]), last)
    stages = tuple(backbone.out_indices[i] for i in chosen)
    text, channels = f': set model.backbone.out_indices={stages}', maps[chosen[0] :]
    if channels != [*wanted] and chosen == last:
        text += f' and model.{name}.in_channels={channels}'
    return text


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
    # a model with a language model reads the names themselves
    told_names = name != 'train' or hasattr(model, 'language_model')
    check_names(key, parts, warn if told_names else None)
    meta = getattr(parts[0], 'metainfo', {})
    names = meta.get('classes') or ()
    # a head of one class may detect objects of any class
    if head is None or head.num_classes == 1:
        return
    has = f'but the head has num_classes={head.num_classes}'
    if names and 'thing_classes' not in meta and len(names) != head.num_classes:
        warn(f'{key}: it has {len(names)} classes, {has}')
    outputs, loss = head.num_classes, getattr(head, 'loss_decode', None)
    if loss is not None:  # a segmentor's head may have one output for two classes
        outputs = max(getattr(head, 'out_channels', outputs), 2)
    labels = labels_of(parts[0], sample)
    for part in parts[1:]:
        with error_in(cfg, key):
            labels |= labels_of(part, read_first(part, warn) if len(part) else None)
    if name == 'train' and 255 in labels and labels <= {0, 255}:
        warn_of_ignored(key, dataset, head, warn)
    labels -= {getattr(head, 'ignore_index', None)}
    if name == 'train' and labels and max(labels) >= outputs:
        text = f'{key}: its labels go up to {max(labels)}, {has}'
        if loss is None or 'CrossEntropyLoss' in repr(loss):
            raise ValueError(f'{text}, labels 0 to {outputs - 1}')
        warn(text)  # Dice losses take any label


def parts_of(dataset: Any) -> list[Any]:
    """The sets that wrappers such as ConcatDataset and RepeatDataset are around."""
    inner = getattr(dataset, 'datasets', None)
    if isinstance(inner, (list, tuple)) and inner:
        return [part for each in inner for part in parts_of(each)]
    inner = getattr(dataset, 'dataset', None)
    if inner is not None and hasattr(inner, '__getitem__'):
        return parts_of(inner)
    return [dataset]


def check_names(
    key: str, parts: list[Any], warn: Optional[Callable[[str], object]]
) -> None:
    """Raises a ValueError for sets without any object of their classes, and for sets
    that are used as one and give a label two names, which ``warn`` takes instead."""
    known: Any = ()
    for i, part in enumerate(parts, 1):
        place = f'{key}: ' if len(parts) == 1 else f'{key}, set {i}: '
        meta, found = getattr(part, 'metainfo', None), getattr(part, 'cat_ids', None)
        names = (meta.get('classes') if isinstance(meta, dict) else None) or ()
        if names and found is not None and not len(found):
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
        found = getattr(getattr(samples, 'gt_sem_seg', None), 'data', None)
        if ignored != 255 or found is None:
            return
        maps.append(found.flatten())
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


def first_sample(cfg: Config, warn: Callable[[str], object]) -> tuple[Any, Any]:
    """The dataset of a data loader, and its first sample or None."""
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
    """The first sample of a dataset, or None."""
    try:
        return dataset[0]
    except LIBRARY_ERRORS as error:
        if type(dataset).__module__.partition('.')[0] in LIBRARIES:
            raise
        warn(f'first sample: {error}')  # a run may prepare a dataset of one's own
        return None


def find_head(model: nn.Module) -> Any:
    """The head of a libraries' model that has the number of classes."""
    for owner in (getattr(model, 'roi_head', None), model):
        for name in ('head', 'bbox_head', 'decode_head'):
            head = getattr(owner, name, None)
            head = head[-1] if isinstance(head, nn.ModuleList) else head
            if isinstance(getattr(head, 'num_classes', None), int):
                return head
    return None


def labels_of(dataset: Any, sample: Any) -> set[int]:
    """Labels of the first and the last image of a classifier's dataset, or those of a
    sample of a detector's or a segmentor's."""
    if hasattr(dataset, 'get_gt_labels'):
        ends = (dataset.get_data_info(i).get('gt_label') for i in (0, len(dataset) - 1))
        return {int(x) for x in ends if isinstance(x, (int, np.integer))}
    samples = sample.get('data_samples') if isinstance(sample, dict) else None
    for name, part in (('gt_instances', 'labels'), ('gt_sem_seg', 'data')):
        found = getattr(getattr(samples, name, None), part, None)
        if found is not None:
            return set(found.unique().tolist())
    return set()
