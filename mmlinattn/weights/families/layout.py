"""Layouts: what the rows of a family depend on."""

from collections.abc import Iterable
from typing import Callable, NamedTuple

from ..rows import Keys, Row, StateDict, count_blocks

# our option, our last names, official last names
SCALES = {
    'attn_scale': (('omega',), ('lamb',)),
    'feat_scale': (('dc_scale', 'hc_scale'), ('lamb1', 'lamb2')),
}


class Layout(NamedTuple):
    """How a code base names and orders the modules of one backbone.

    Attributes:
        style: 'official' for the names that the official repositories share with
            timm, 'timm' where timm has moved on, 'mm' for OpenMMLab's.
        depths: Blocks of each stage; of a plain model its blocks, of CaiT then its
            class layers.
        last_norm: Name of the norm of the last map.
        norms: Numbers, from 0, of the earlier maps that have a norm.
        scales: 'attn_scale', 'feat_scale' or both, where there are such vectors.
    """

    style: str
    depths: tuple[int, ...]
    last_norm: str = 'norm'
    norms: tuple[int, ...] = ()
    scales: tuple[str, ...] = ()


class Family(NamedTuple):
    """Models that convert alike.

    Attributes:
        title: Name of the models.
        code: Whose checkpoints these are.
        marks: Whether keys, without the prefix of a backbone, are such a model's.
        read: From the official backbone's keys to their layout.
        ours: From our backbone's keys to the layout of the official repository.
        rows: From a layout to rows. Rows are complete, so that they show which keys
            are missing.
        arch: From our state dict to the sizes that can be read from it.
        attentions: Classes of our attentions that do what the official ones do.
        place: Where the official code looks for the state dict in its files.
        buffers: Last names of official buffers that a model computes itself.
    """

    title: str
    code: str
    marks: Callable[[Keys], bool]
    read: Callable[[Keys], Layout]
    ours: Callable[[Keys], Layout]
    rows: Callable[[Layout], list[Row]]
    arch: Callable[[StateDict], dict]
    attentions: tuple[str, ...]
    place: str = 'model'
    buffers: tuple[str, ...] = ()


def find_scales(keys: Keys, official: bool) -> tuple[str, ...]:
    """Options whose vectors are among the keys, official ones or ours."""
    last_names = {key.rpartition('.')[2] for key in keys}
    return tuple(
        option for option, names in SCALES.items() if last_names & {*names[official]}
    )


def find_norms(keys: Keys, names: Iterable[str]) -> tuple[int, ...]:
    """Places, among names of norms, of those that are there."""
    return tuple(i for i, name in enumerate(names) if f'{name}.weight' in keys)


def our_pyramid(keys: Keys, last_norm: str = 'norm') -> Layout:
    """Layout of one of our pyramids, to be named as the official repository does."""
    stages = count_blocks(keys, 'stages.')
    return Layout(
        'official',
        tuple(count_blocks(keys, f'stages.{i}.blocks.') for i in range(stages)),
        last_norm,
        find_norms(keys, [f'norm{i}' for i in range(stages - 1)]),
        find_scales(keys, official=False),
    )


def our_plain(keys: Keys) -> Layout:
    """Layout of one of our plain models, likewise."""
    prefixes = ['blocks.', 'class_layers.blocks.']
    return Layout(
        'official',
        tuple(
            count_blocks(keys, prefix)
            for prefix in prefixes
            if any(key.startswith(prefix) for key in keys)
        ),
        scales=find_scales(keys, official=False),
    )
