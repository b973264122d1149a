"""The source of a config, from templates and what is known of the data."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from string import Template
from typing import Any, Optional

import torch

from mmlinattn.own_data import OBJECT_TASKS, Note, OwnData, parse_colors

from .bases import Base, choose_base, find_pretrained
from .heads import NARROW, WIDE, HeadSource
from .photo_limits import ObjectLimits
from .sizes import (
    Sizes,
    choose_sizes,
    median_size,
    padding_source,
    photo_sizes,
    reduced_notes,
    small_object_notes,
)
from .tasks import TASKS

TEMPLATES = Path(__file__).with_name('templates')
ITERATIONS = 4000
FEWEST_EPOCHS, MOST_EPOCHS = 12, 100


@dataclass(frozen=True)
class Choices:
    """The options that choose what is trained; None for a default."""

    backbone: str = 'swin-t-elfatt'
    detector: Optional[str] = None
    pretrained: Optional[str] = None
    epochs: Optional[int] = None

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> 'Choices':
        """The options among those of a command."""
        return cls(**{name: getattr(args, name) for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Devices:
    """What trains: GPUs and the GB of one of them, or a CPU with 0 GB."""

    number: int
    memory: float

    @property
    def are_gpus(self) -> bool:
        """Whether there is a GPU."""
        return self.memory > 0

    @classmethod
    def find(cls) -> 'Devices':
        """The GPUs of this machine, or its CPU."""
        if not torch.cuda.is_available():
            return cls(number=1, memory=0)
        memory = torch.cuda.get_device_properties(0).total_memory
        return cls(number=torch.cuda.device_count(), memory=memory / 2**30)


@dataclass(frozen=True)
class NewConfig:
    """The source of a config, and notes on what was chosen."""

    source: str
    notes: list[Note]


@dataclass(frozen=True)
class Model:
    """The model's part of a config.

    Attributes:
        source (str): Lines that change the base config's.
        parts (list[str]): Templates that it needs.
        notes (list[Note]): On what makes it smaller.
    """

    source: str
    parts: list[str]
    notes: list[Note]


def make_config(
    data: OwnData, choices: Choices, lists: Path, devices: Devices
) -> NewConfig:
    """The config of a data set, whose lists are in a folder.

    Raises:
        ValueError: If no config of ours is for these choices and data, photos are too
            few for a batch, or nothing is left of one that is resized.
    """
    task = data.folder.options.task
    method = choices.detector or ('mask-rcnn' if data.has_masks else TASKS[task].method)
    base = choose_base(task, method, choices.backbone, data.has_masks)
    pretrained = find_pretrained(task, base, choices.pretrained)
    model = choose_model(task, base, devices)
    sizes = photo_sizes(data)
    num = len(data.splits['train'])
    median = median_size(sizes)
    chosen = choose_sizes(task, median, num / devices.number, devices.memory)
    check_batch(num, chosen.batch * devices.number)
    limits = ObjectLimits(most_objects(data) if task == 'det' else 0)
    masks = task == 'det' and base.learns_masks
    parts = [task, *model.parts]
    if not limits.are_usual:
        parts.append('many_objects')
    if masks:
        parts.append('masks')
    source = render(
        parts,
        source=dict(
            title=title_of(base, data),
            model=model.source,
            rate=rate_source(base, pretrained),
            limits=limits.lines(base.cfg.model),
            score=limits.score,
            padding=padding_source(task, sizes, chosen.scale),
            palette=palette_source(data),
        ),
        **limits.values(),
        **size_values(task, median, chosen),
        **schedule_values(base, num, chosen.batch * devices.number, choices.epochs),
        base=base.name,
        pretrained=pretrained,  # weights of the backbone
        classes=tuple(data.classes),
        root=f'{data.folder.options.data.resolve().as_posix()}/',
        lists=f'{lists.resolve().as_posix()}/',
        masks=masks,
        devices=devices.number,
        workers=choose_workers(devices),
    )
    notes = starting_notes(task, pretrained, choices, devices)
    if task in OBJECT_TASKS:
        notes += small_object_notes(data, chosen.scale)
    if task == 'seg':
        notes += reduced_notes(median, chosen.scale)
    return NewConfig(source, [*notes, *model.notes])


def choose_model(task: str, base: Base, devices: Devices) -> Model:
    """What of the base config's model changes: the classes and, without a GPU, the
    width of its heads and the number of regions."""
    base_classes = TASKS[task].num_classes
    if devices.are_gpus:
        source = HeadSource(base_classes).of_dict(base.cfg.model)
        return Model(f'model = {source}', parts=[], notes=[])
    wide = WIDE.get(base.method, {})
    source = f'model = {HeadSource(base_classes, wide).of_dict(base.cfg.model)}'
    parts, changes = [], []
    if wide:
        comment = 'channels of pyramid and heads, few for training without a GPU'
        source = f'width = {NARROW}  # {comment}\n{source}'
        changes.append(f'{NARROW} channels in pyramid and heads')
    if has_regions(base.cfg.model):
        parts.append('fewer_regions')
        changes.append('32 regions of a photo, not 512')
    notes = [
        Note(f'no GPU: the config uses {change}: faster, less accurate')
        for change in changes
    ]
    return Model(source, parts, notes)


def has_regions(model: Any) -> bool:
    """True for a detector of two stages, whose second one samples regions."""
    return isinstance((model.get('train_cfg') or {}).get('rcnn'), dict)


def starting_notes(
    task: str, pretrained: Optional[str], choices: Choices, devices: Devices
) -> list[Note]:
    """Notes on what makes a training long."""
    notes = []
    if not pretrained:
        text = 'the backbone trains from scratch, which needs many photos'
        notes.append(Note(text))
    if not devices.are_gpus:
        remedy = how_to_shorten(task, choices)
        notes.append(Note(f'no GPU: the training runs on the CPU{remedy}'))
    return notes


def how_to_shorten(task: str, choices: Choices) -> str:
    """Options that shorten a training and were not chosen, in words, or ''."""
    options = [] if choices.epochs else ['--epochs']
    fast = TASKS[task].fast_backbone
    if choices.backbone != fast:
        options.append(f'--backbone {fast}')
    if not options:
        return ''
    verb = 'shortens' if len(options) == 1 else 'shorten'
    return f'; {" and ".join(options)} {verb} it'


def palette_source(data: OwnData) -> str:
    """Source of the classes' colors, red, green and blue from 0 to 255, which pictures
    take: those of --colors, if each class has one, and '' otherwise."""
    palette: dict[str, tuple[int, int, int]] = {}
    for code, name in parse_colors(data.folder.options.colors or ()).items():
        palette.setdefault(name, (code >> 16, code >> 8 & 255, code & 255))
    if not all(name in palette for name in data.classes):
        return ''  # mmseg takes as many colors as classes
    return f', palette={[palette[name] for name in data.classes]}'


def check_batch(num: int, batch: int) -> None:
    """Raises a ValueError if photos for training are fewer than a batch of all
    devices."""
    if num < batch:
        raise ValueError(f'{num} photos for training are fewer than a batch of {batch}')


def most_objects(data: OwnData) -> int:
    """The greatest number of objects of the classes in a photo."""
    return max(
        sum(item.name in data.classes for item in photo.objects)
        for photo in chain(*data.splits.values())
    )


def title_of(base: Base, data: OwnData) -> str:
    """The first line of a config: the model and the numbers of photos."""
    counts = [f'{len(photos)} for {split}' for split, photos in data.splits.items()]
    return f'{base.method} with {base.backbone}; photos: {", ".join(counts)}'


def rate_source(base: Base, pretrained: Optional[str]) -> str:
    """Source of the learning rate."""
    first = f'{base.cfg.optim_wrapper.optimizer.lr:g}'
    rate = f'{first} * (batch / {base.cfg.auto_scale_lr.base_batch_size}) ** 0.5'
    return rate if pretrained else f'{rate} * 4  # to train from scratch'


def size_values(task: str, median: Sequence[int], chosen: Sizes) -> dict[str, Any]:
    """Values for the templates on sizes."""
    width, height = median
    return dict(
        width=width,  # of the median photo
        height=height,
        scale=chosen.scale,  # (long, short) side
        crop=chosen.crop,  # (H, W)
        batch=chosen.batch,  # on each device
        test_batch=chosen.batch if task == 'cls' else 1,
    )


def schedule_values(
    base: Base, num: int, batch: int, epochs: Optional[int]
) -> dict[str, Any]:
    """Values for the templates on the length of a training of ``num`` photos, in
    batches of all devices."""
    if not epochs:
        passes = ITERATIONS // (num // batch)
        epochs = min(max(passes, FEWEST_EPOCHS), MOST_EPOCHS)
    return dict(
        num=num,
        epochs=epochs,
        val_interval=max(1, epochs // 12),
        clip=(base.cfg.optim_wrapper.get('clip_grad') or {}).get('max_norm', 1.0),
    )


def choose_workers(devices: Devices) -> int:
    """Processes that read photos for each device."""
    return max(1, min(4, (os.cpu_count() or 1) // 2 // devices.number))


def render(parts: Sequence[str], source: dict[str, str], **values: Any) -> str:
    """The source of a config, from the template that all have and those of parts;
    values are written as literals, and those of ``source`` as they are."""
    common, *texts = (
        (TEMPLATES / f'{name}.template').read_text('utf-8')
        for name in ('common', *parts)
    )
    literals = {key: repr(value) for key, value in values.items()}
    whole = Template(common).safe_substitute(parts=''.join(texts))
    return Template(whole).substitute({**literals, **source})
