"""Data loaders and heads before a run begins: first samples, labels, channels."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

from mmlinattn.engine.part_errors import NO_SAMPLES

# paths of the head with the number of classes in models of the three libraries
HEADS = ('head', 'bbox_head', 'roi_head.bbox_head', 'decode_head')


def annotations(loader: Any) -> str:
    """The dataset of a loader's config for an error: its annotation file, if any."""
    while isinstance(loader, dict) and 'dataset' in loader:  # unwraps datasets
        loader = loader['dataset']
    path = loader.get('ann_file') if isinstance(loader, dict) else None
    return f', ann_file={path!r}' if path else ''


def build_loader(cfg: Any) -> DataLoader:
    """Builds a data loader as a runner does, but without worker processes."""
    if cfg.get('dataset') is None:
        raise KeyError('dataset')
    try:
        loader = Runner.build_dataloader(cfg, seed=0)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f'{error.filename or str(error)!r}: there is no such file or folder; put '
            'or link the data there, or set data_root and the paths in it'
        ) from error
    if not isinstance(loader.dataset, IterableDataset) and not len(loader.dataset):
        raise ValueError(NO_SAMPLES)
    loader.num_workers = loader.timeout = 0
    return loader


def first_sample(loader: DataLoader) -> Any:
    """The sample that a loader reads first, or None if only the loader can read it."""
    if isinstance(loader.dataset, IterableDataset):
        return None
    if loader.batch_sampler is None:
        return loader.dataset[next(iter(loader.sampler))]
    return loader.dataset[next(iter(next(iter(loader.batch_sampler), [0])))]


def problems(
    dataset: Any, sample: Any, model: nn.Module, trains: bool
) -> Iterator[tuple[str, bool]]:
    """Conflicts of a dataset and a sample of it with a model: a text, and True if the
    run fails or learns nothing."""
    meta = getattr(dataset, 'metainfo', {})
    names, found = meta.get('classes'), getattr(dataset, 'cat_ids', None)
    if names and found is not None and len(found) != len(names):
        text = (
            f'its annotations have {len(found) or "none"} of its {len(names)} classes'
        )
        yield f'{text}: name theirs in metainfo=dict(classes=...)', not found
    head = find_head(model)
    # a head of one class may detect objects of any class
    if head is None or head.num_classes == 1:
        return
    outputs, loss = head.num_classes, getattr(head, 'loss_decode', None)
    has = f'but the head has num_classes={outputs}'
    if names and 'thing_classes' not in meta and len(names) != outputs:
        yield f'it has {len(names)} classes, {has}', False
    if loss is not None:  # a segmentor's head may have one output for two classes
        outputs = max(getattr(head, 'out_channels', outputs), 2)
    labels = labels_of(dataset, sample) - {getattr(head, 'ignore_index', None)}
    if labels and max(labels) >= outputs:
        # Dice losses take any label
        fails = loss is None or 'CrossEntropyLoss' in repr(loss)
        text = f'its labels go up to {max(labels)}, {has}, labels 0 to {outputs - 1}'
        yield text, trains and fails


def channel_conflict(model: nn.Module) -> str:
    """The key of a neck or head with other channels than the backbone's maps, and
    both; '' if all fit, or for backbones that do not tell them."""
    has = getattr(getattr(model, 'backbone', None), 'feature_channels', None)
    if not has:
        return ''
    neck = getattr(model, 'neck', None)
    wanted = getattr(neck, 'in_channels', None)
    if isinstance(wanted, (list, tuple)):
        fits, key = tuple(wanted) == tuple(has), 'model.neck'
        return '' if fits else _conflict(key, wanted, has)
    if neck is not None:
        return ''
    for name in ('decode_head', 'auxiliary_head'):
        heads = getattr(model, name, None)
        several = isinstance(heads, nn.ModuleList)
        for i, head in enumerate(heads if several else [heads]):
            wanted, places = (
                getattr(head, x, None) for x in ('in_channels', 'in_index')
            )
            chosen = places if isinstance(places, (list, tuple)) else [places]
            if not all(isinstance(x, int) for x in chosen):
                continue
            near = [has[x] if -len(has) <= x < len(has) else None for x in chosen]
            # maps that a head joins have the sum of their channels
            given = [wanted] if isinstance(wanted, int) else [*(wanted or near)]
            joined = None not in near and given == [sum(near)]
            if given != near and not joined:
                key = f'model.{name}.{i}' if several else f'model.{name}'
                return _conflict(key, wanted, has, f' and in_index={places}')
    return ''


def _conflict(key: str, wanted: Any, has: Any, more: str = '') -> str:
    return (
        f'{key} has in_channels={wanted}{more}, but the maps of the backbone have '
        f'{list(has)} channels'
    )


def labels_of(dataset: Any, sample: Any) -> set[int]:
    """Labels of up to 1,000 images of a classifier's dataset, evenly spread, or those
    of a sample of a detector's or a segmentor's."""
    if hasattr(dataset, 'get_gt_labels'):
        places = np.unique(np.linspace(0, len(dataset) - 1, 1000).round().astype(int))
        labels = [dataset.get_data_info(int(i)).get('gt_label') for i in places]
        # an image may have several, or none
        return {x for x in labels if isinstance(x, (int, np.integer))}
    samples = sample.get('data_samples') if isinstance(sample, Mapping) else None
    for name, part in (('gt_instances', 'labels'), ('gt_sem_seg', 'data')):
        found = getattr(getattr(samples, name, None), part, None)
        if found is not None:
            return set(found.unique().tolist())
    return set()


def find_head(model: nn.Module) -> Any:
    """The head of a libraries' model that has the number of classes."""
    for path in HEADS:
        head: Any = model
        for name in path.split('.'):
            head = getattr(head, name, None)
        if isinstance(head, nn.ModuleList):
            head = head[-1]
        if isinstance(getattr(head, 'num_classes', None), int):
            return head
    return None
