"""Checks before a run that MMEngine makes late or not at all: model, data, labels."""

import copy
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from itertools import combinations
from typing import Any

import numpy as np
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
    meta, found = getattr(dataset, 'metainfo', {}), getattr(dataset, 'cat_ids', None)
    names = meta.get('classes') or ()
    if names and found is not None and not len(found):
        raise ValueError(
            f'{key}: its annotations have none of its {len(names)} classes: name '
            'theirs in metainfo=dict(classes=...)'
        )
    # a head of one class may detect objects of any class
    if head is None or head.num_classes == 1:
        return
    has = f'but the head has num_classes={head.num_classes}'
    if names and 'thing_classes' not in meta and len(names) != head.num_classes:
        warn(f'{key}: it has {len(names)} classes, {has}')
    outputs, loss = head.num_classes, getattr(head, 'loss_decode', None)
    if loss is not None:  # a segmentor's head may have one output for two classes
        outputs = max(getattr(head, 'out_channels', outputs), 2)
    labels = labels_of(dataset, sample) - {getattr(head, 'ignore_index', None)}
    if name == 'train' and labels and max(labels) >= outputs:
        text = f'{key}: its labels go up to {max(labels)}, {has}'
        if loss is None or 'CrossEntropyLoss' in repr(loss):
            raise ValueError(f'{text}, labels 0 to {outputs - 1}')
        warn(text)  # Dice losses take any label


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
    try:
        return dataset, dataset[0]
    except LIBRARY_ERRORS as error:
        if type(dataset).__module__.partition('.')[0] in LIBRARIES:
            raise
        warn(f'first sample: {error}')  # a run may prepare a dataset of one's own
        return dataset, None


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
