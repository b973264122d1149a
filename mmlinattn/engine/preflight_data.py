"""Data loaders before a run begins: their first samples, labels and classes."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Optional

import numpy as np
from mmengine.registry import DATASETS
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

from mmlinattn.engine.part_errors import NO_SAMPLES

# where the three libraries have the head that knows the number of classes
HEADS = ('head', 'bbox_head', 'roi_head.bbox_head', 'decode_head')
# losses that fail on a label without an output
STRICT_LOSSES = ('CrossEntropyLoss', 'LabelSmoothLoss')


class Problem(NamedTuple):
    """What is wrong with data, and whether a training comes to nothing by it."""

    text: str
    fatal: bool


def annotations(loader: Any) -> str:
    """The dataset of a loader's config for an error: its annotation file, if any."""
    dataset = inner_dataset(loader)
    path = dataset.get('ann_file') if isinstance(dataset, dict) else None
    return f', ann_file={path!r}' if path else ''


def inner_dataset(cfg: Any) -> Any:
    """The config of the dataset in a loader's, without its wrappers."""
    while isinstance(cfg, dict) and 'dataset' in cfg:
        cfg = cfg['dataset']
    return cfg


def build_loader(cfg: Any) -> DataLoader:
    """Builds a data loader as a runner does; it then works without other processes."""
    if cfg.get('dataset') is None:
        raise KeyError('dataset')
    try:
        loader = Runner.build_dataloader(cfg, seed=0)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f'{error.filename or str(error)!r}: there is no such file or folder; put '
            'or link the data there, or set data_root and the paths in it'
        ) from error
    except ValueError as error:
        if 'need at least one array' in str(error):
            # a dataset that keeps images without objects knows its classes
            whole = dict(inner_dataset(cfg), filter_cfg=None, serialize_data=False)
            for problem in foreign_classes(DATASETS.build(whole)):
                raise ValueError(problem.text) from error
        raise
    if not isinstance(loader.dataset, IterableDataset) and not len(loader.dataset):
        raise ValueError(NO_SAMPLES)
    loader.num_workers = loader.timeout = 0
    return loader


def first_sample(loader: DataLoader) -> Any:
    """The sample that a loader reads first, or None if only it can read it."""
    if isinstance(loader.dataset, IterableDataset):
        return None
    if loader.batch_sampler is None:
        return loader.dataset[next(iter(loader.sampler))]
    return loader.dataset[next(iter(next(iter(loader.batch_sampler), [0])))]


def problems(
    loader: DataLoader, sample: Any, model: nn.Module, trains: bool
) -> Iterator[Problem]:
    """What a loader's data, of which it is a sample, has that a model can't learn."""
    dataset: Any = loader.dataset
    yield from foreign_classes(dataset)
    meta = getattr(dataset, 'metainfo', {})
    names, head = meta.get('classes'), find_head(model)
    outputs = getattr(head, 'num_classes', None)
    # a head of one class may be of objects of any class
    if not isinstance(outputs, int) or outputs == 1:
        return
    if names and 'thing_classes' not in meta and len(names) != outputs:
        text = f'it has {len(names)} classes, but the head has num_classes={outputs}'
        yield Problem(text, False)
    samples = sample.get('data_samples') if isinstance(sample, Mapping) else None
    for labels, strict in (
        (labels_of_images(dataset), trains and is_strict(head, 'loss_module')),
        (getattr(getattr(samples, 'gt_instances', None), 'labels', None), trains),
    ):
        if labels is not None and len(labels) and int(max(labels)) >= outputs:
            text = f'labels go up to {int(max(labels))}, but the head has num_classes'
            yield Problem(f'{text}={outputs}, for labels 0 to {outputs - 1}', strict)
    if hasattr(samples, 'gt_sem_seg') and hasattr(head, 'ignore_index'):
        for problem in foreign_labels(samples.gt_sem_seg.data, head):
            yield problem._replace(fatal=problem.fatal and trains)


def foreign_classes(dataset: Any) -> Iterator[Problem]:
    """Of a dataset whose annotations have none, or not all, of its classes."""
    known = getattr(dataset, 'cat_ids', None)
    names = getattr(dataset, 'metainfo', {}).get('classes')
    if known is None or names is None or len(known) == len(names):
        return
    if known:
        text = f'its annotations have {len(known)} of its {len(names)} classes'
        yield Problem(text, False)
        return
    with open(dataset.ann_file) as file:
        found = [x['name'] for x in json.load(file).get('categories', [])]
    text = f'its annotations have none of its {len(names)} classes, {listed(names)}'
    advice = 'name them in metainfo=dict(classes=...)'
    yield Problem(f'{text}: theirs are {listed(found)}; {advice}', True)


def listed(names: Any) -> str:
    """Names in a line, of more than 20 the first ones."""
    rest = ['...'] if len(names) > 20 else []
    return f'({", ".join([*map(str, names[:20]), *rest])})'


def labels_of_images(dataset: Any) -> Optional[list[int]]:
    """Labels of up to 1,000 evenly spread images, if each has one."""
    if not hasattr(dataset, 'get_gt_labels'):
        return None
    places = np.unique(np.linspace(0, len(dataset) - 1, 1000).round().astype(int))
    labels = [dataset.get_data_info(int(i)).get('gt_label') for i in places]
    whole = all(isinstance(label, (int, np.integer)) for label in labels)
    return labels if whole else None


def foreign_labels(target: Any, head: Any) -> Iterator[Problem]:
    """Of a label map with labels that a segmentor has no outputs for."""
    ignored = head.ignore_index
    outputs = max(getattr(head, 'out_channels', head.num_classes), 2)
    labels = target[target != ignored] if ignored is not None else target
    if labels.numel() and int(labels.max()) >= outputs:
        yield Problem(
            f'its label map has {int(labels.max())}, but the head has num_classes='
            f'{head.num_classes}, for labels 0 to {outputs - 1}, and ignores {ignored}',
            is_strict(head, 'loss_decode'),
        )


def is_strict(head: Any, name: str) -> bool:
    """Whether one of a head's losses fails on a label without an output."""
    loss = getattr(head, name, None)
    losses = loss if isinstance(loss, nn.ModuleList) else [loss]
    return any(type(loss).__name__ in STRICT_LOSSES for loss in losses)


def find_head(model: nn.Module) -> Any:
    """The head of a model of one of the libraries that knows the number of classes."""
    for path in HEADS:
        head: Any = model
        for name in path.split('.'):
            head = getattr(head, name, None)
        if isinstance(head, nn.ModuleList):
            head = head[-1]
        if isinstance(getattr(head, 'num_classes', None), int):
            return head
    return None
