"""The source of a config, from templates and what is known of the data."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from string import Template
from typing import Any, Optional

from mmlinattn.own_data import OBJECT_TASKS, Note, OwnData, parse_colors

from .bases import TYPES, Base, choose_base
from .devices import Devices
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
from .starting import Beginning, starting_notes
from .starts import Start, Wish, choose_start

TEMPLATES = Path(__file__).with_name('templates')
ITERATIONS = 4000
FEWEST_EPOCHS, MOST_EPOCHS = 12, 100
SMALL_BATCH = 8  # of all devices, for statistics of BatchNorm
# options of a backbone that depend on what it is trained for
KEPT = {
    *('out_indices', 'out_type', 'drop_rate', 'drop_path_rate', 'frozen_stages'),
    *('init_cfg', 'norm_eval', 'with_cp', 'mask_padding', 'pad_small_map'),
}


@dataclass(frozen=True)
class Choices:
    """The options that choose what is trained; None for a default."""

    backbone: Optional[str] = None
    detector: Optional[str] = None
    pretrained: Optional[str] = None
    epochs: Optional[int] = None
    start: Optional[str] = None
    attn_scale: bool = False
    feat_scale: bool = False

    @property
    def wish(self) -> Wish:
        """What a training is to start from."""
        return Wish(self.start, self.backbone, self.detector, self.pretrained)

    @classmethod
    def from_args(cls, args: argparse.Namespace) -> 'Choices':
        """Return the options among those of a command."""
        return cls(**{name: getattr(args, name) for name in cls.__dataclass_fields__})


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
    """Return the config of a data set, whose lists are in a folder.

    Raises:
        ValueError: If no config of ours is for these choices and data, photos are too
            few for a batch, or nothing is left of one that is resized.
    """
    task = data.folder.options.task
    num = len(data.splits['train'])
    start = choose_start(task, choices.wish, data.has_masks, num, devices)
    base = choose_base(task, start.method, start.backbone, data.has_masks, start.config)
    beginning = Beginning(task, start, base)
    sizes = photo_sizes(data)
    median = median_size(sizes)
    chosen = choose_sizes(task, median, num / devices.number, devices.memory)
    batch = chosen.batch * devices.number
    check_batch(num, batch)
    model = choose_model(task, start, base, devices)
    changes = model_changes(task, choices, beginning, batch)
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
            start=beginning.source(),
            model='\n'.join([model.source, *changes]),
            rate=beginning.rate(),
            warmup=beginning.warmup(),
            factors=beginning.factors(),
            limits=limits.lines(base.cfg.model),
            score=limits.score,
            padding=padding_source(task, sizes, chosen.scale),
            palette=palette_source(data),
        ),
        **limits.values(),
        **size_values(task, median, chosen),
        **schedule_values(base, num, batch, choices.epochs),
        base=base.name,
        model_name=f'{base.method} {base.backbone}',
        data_set=start.data_set,
        classes=tuple(data.classes),
        root=f'{data.folder.options.data.resolve().as_posix()}/',
        lists=f'{lists.resolve().as_posix()}/',
        masks=masks,
        devices=devices.number,
        workers=choose_workers(devices),
    )
    notes = starting_notes(task, beginning, choices.epochs, devices)
    if task in OBJECT_TASKS:
        notes += small_object_notes(data, chosen.scale)
    if task == 'seg':
        notes += reduced_notes(median, chosen.scale)
    return NewConfig(source, [*notes, *model.notes])


def choose_model(task: str, start: Start, base: Base, devices: Devices) -> Model:
    """Return what of the base config's model changes: the classes and, without a GPU,
    the number of regions, and the width of heads that start anew."""
    base_classes = base.num_classes(task)
    width, wide = start.width, WIDE.get(base.method, {})
    if not start.is_whole and not devices.are_gpus:
        width = NARROW
    wide = wide if width else {}
    source = f'model = {HeadSource(base_classes, wide).of_dict(base.model)}'
    parts, changes = [], []
    if wide:
        comment = 'channels of pyramid and heads, few for training without a GPU'
        source = f'width = {width}  # {comment}\n{source}'
        changes.append(f'{width} channels in pyramid and heads')
    if has_regions(base.cfg.model) and not devices.are_gpus:
        parts.append('fewer_regions')
        changes.append('32 regions of a photo, not 512')
    notes = [
        Note(f'no GPU: the config uses {change}: faster, less accurate')
        for change in changes
        if not devices.are_gpus
    ]
    return Model(source, parts, notes)


def model_changes(
    task: str, choices: Choices, beginning: Beginning, batch: int
) -> list[str]:
    """Return lines that change more of the model than its heads."""
    lines = []
    if beginning.base.method in TYPES:
        kind = TYPES[beginning.base.method]
        lines.append(f'model.update(type={kind!r})  # it learns boxes, and no masks')
        lines.append(
            "model['roi_head'].update(mask_head=None, mask_roi_extractor=None)"
        )
    if beginning.start.adapted:
        changes = changed_backbone(beginning.base, beginning.start.adapted)
        lines.append('# its attentions are those of the adapted weights')
        lines.append(f"model.setdefault('backbone', {{}}).update({changes})")
    scaled = [x for x in ('attn_scale', 'feat_scale') if getattr(choices, x)]
    if scaled:
        options = ', '.join(f'{x}=True' for x in scaled)
        lines.append('# at their start, they change no output')
        lines.append(f"model.setdefault('backbone', {{}}).update({options})")
    if beginning.has_weights and has_batch_norm(beginning.base) and batch < SMALL_BATCH:
        lines.append('# small batches keep the statistics of the weights')
        lines.append("model.setdefault('backbone', {}).update(norm_eval=True)")
    return lines


def changed_backbone(base: Base, backbone: dict[str, Any]) -> dict[str, Any]:
    """Return what of a config's backbone changes to another one's, without settings of
    the training and of its outputs; None is the default of an option."""
    own = base.cfg.model.backbone
    changes = {
        key: backbone.get(key)
        for key in {**own, **backbone}
        if key not in KEPT and own.get(key) != backbone.get(key)
    }
    return {
        key: dict(value, _delete_=True)
        if isinstance(value, dict) and key in own
        else value
        for key, value in changes.items()
    }


def has_batch_norm(base: Base) -> bool:
    """Return whether the backbone has BatchNorm."""
    norm = base.cfg.model.backbone.get('norm_cfg') or {}
    return str(norm.get('type')).endswith('BN')


def has_regions(model: Any) -> bool:
    """Return True for a detector of two stages, whose second one samples regions."""
    return isinstance((model.get('train_cfg') or {}).get('rcnn'), dict)


def palette_source(data: OwnData) -> str:
    """Return source of the classes' colors, red, green and blue from 0 to 255, which
    pictures take: those of --colors, if each class has one, and '' otherwise."""
    palette: dict[str, tuple[int, int, int]] = {}
    for code, name in parse_colors(data.folder.options.colors or ()).items():
        palette.setdefault(name, (code >> 16, code >> 8 & 255, code & 255))
    if not all(name in palette for name in data.classes):
        return ''  # mmseg takes as many colors as classes
    return f', palette={[palette[name] for name in data.classes]}'


def check_batch(num: int, batch: int) -> None:
    """Raise a ValueError if photos for training are fewer than a batch of all
    devices."""
    if num < batch:
        raise ValueError(f'{num} photos for training are fewer than a batch of {batch}')


def most_objects(data: OwnData) -> int:
    """Return the greatest number of objects of the classes in a photo."""
    return max(
        sum(item.name in data.classes for item in photo.objects)
        for photo in chain(*data.splits.values())
    )


def title_of(base: Base, data: OwnData) -> str:
    """Return the first line of a config: the model and the numbers of photos."""
    counts = [f'{len(photos)} for {split}' for split, photos in data.splits.items()]
    return f'{base.method} with {base.backbone}; photos: {", ".join(counts)}'


def size_values(task: str, median: Sequence[int], chosen: Sizes) -> dict[str, Any]:
    """Return values for the templates on sizes."""
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
    """Return values for the templates on the length of a training of ``num`` photos, in
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
    """Return how many processes read photos for each device."""
    return max(1, min(4, (os.cpu_count() or 1) // 2 // devices.number))


def render(parts: Sequence[str], source: dict[str, str], **values: Any) -> str:
    """Return the source of a config, from the template that all have and those of
    parts; values are written as literals, and those of ``source`` as they are."""
    common, *texts = (
        (TEMPLATES / f'{name}.template').read_text('utf-8')
        for name in ('common', *parts)
    )
    literals = {key: repr(value) for key, value in values.items()}
    whole = Template(common).safe_substitute(parts=''.join(texts))
    return Template(whole).substitute({**literals, **source})
