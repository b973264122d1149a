"""Families of official models, and functions that their files share."""

from collections.abc import Iterable
from typing import Callable, NamedTuple

from torch import Tensor

from mmlinattn.utils.names import count_blocks

from ..rows import LINEAR, Keys, Row, nested, unchanged

# our option, our last names, official last names
SCALES = {
    'attn_scale': (('omega',), ('lamb',)),
    'feat_scale': (('dc_scale', 'hc_scale'), ('lamb1', 'lamb2')),
}
# in a block with one projection, by our names; most code bases have these
BLOCK = {
    'norm1': 'norm1',
    'attn.qkv': 'attn.qkv',
    'attn.proj': 'attn.proj',
    'norm2': 'norm2',
    'ffn.layers.0.0': 'mlp.fc1',
    'ffn.layers.1': 'mlp.fc2',
}
HEAD = Row('head.fc', 'head', LINEAR)
MM_FFN = {name: name for name in ('ffn.layers.0.0', 'ffn.layers.1')}


class Layout(NamedTuple):
    """Names and order of one backbone's modules in a code base.

    Attributes:
        style: 'official' for the names that the official repositories share with
            timm, 'timm' for newer names of timm, 'mm' for OpenMMLab's.
        depths: Blocks of each stage. A plain model has one entry, CaiT a second one
            for its class layers.
        last_norm: Name of the norm of the last map.
        norms: Numbers, from 0, of the earlier maps that have a norm.
        scales: 'attn_scale', 'feat_scale' or both, where there are such vectors.
        own: Number of the first blocks of each stage whose attention is the family's
            own, not the plain model's. Default: none.
    """

    style: str
    depths: tuple[int, ...]
    last_norm: str = 'norm'
    norms: tuple[int, ...] = ()
    scales: tuple[str, ...] = ()
    own: tuple[int, ...] = ()

    def has_own(self, stage: int, block: int) -> bool:
        """Return True for a block with the family's own attention."""
        return bool(self.own) and block < self.own[stage]


def find_scales(keys: Keys, official: bool) -> tuple[str, ...]:
    """Return options whose vectors are among the keys, official ones or ours."""
    last_names = {key.rpartition('.')[2] for key in keys}
    return tuple(
        option for option, names in SCALES.items() if last_names & {*names[official]}
    )


def find_norms(keys: Keys, stages: int, first: int = 0) -> tuple[str, tuple[int, ...]]:
    """Name of the norm of the last map, and the earlier maps that have one.

    Detectors and segmentors number their norms, from ``first``; classifiers have one.
    """
    names = [f'norm{i + first}' for i in range(stages)]
    normed = [i for i, name in enumerate(names) if f'{name}.weight' in keys]
    last = names[-1] if stages - 1 in normed else 'norm'
    return last, tuple(i for i in normed if i < stages - 1)


def read_depths(keys: Keys) -> tuple[int, ...]:
    """Return blocks of each stage of an official pyramid."""
    stages = range(count_blocks(keys, 'layers.'))
    return tuple(count_blocks(keys, f'layers.{i}.blocks.') for i in stages)


def is_mm(keys: Keys) -> bool:
    """Return True if a backbone's modules have OpenMMLab's names."""
    return any(key.startswith('patch_embed.projection.') for key in keys)


def our_layout(keys: Keys, first_norm: int = 0) -> Layout:
    """Return the layout of one of our backbones in the official repository.

    ``first_norm`` is the official number of the first map's norm.
    """
    stages = count_blocks(keys, 'stages.')
    prefixes = [f'stages.{i}.blocks.' for i in range(stages)]
    prefixes += ['blocks.', 'class_layers.blocks.']
    depths = [
        count_blocks(keys, prefix)
        for prefix in prefixes
        if any(key.startswith(prefix) for key in keys)
    ]
    _, norms = find_norms(keys, stages)
    last_norm = f'norm{stages - 1 + first_norm}' if norms else 'norm'
    scales = find_scales(keys, official=False)
    return Layout(
        style='official',
        depths=tuple(depths),
        last_norm=last_norm,
        norms=norms,
        scales=scales,
    )


def our_layout_of_maps(keys: Keys) -> Layout:
    """:func:`our_layout` of a model that norms all maps, or none as a classifier."""
    layout = our_layout(keys)
    stages = range(len(layout.depths))
    norms = tuple(i for i in stages if f'norm{i}.weight' in keys)
    return layout._replace(last_norm='', norms=norms)


def no_rows(keys: Keys) -> list[Row]:
    """No rows: other parts have the same names in ours."""
    return []


class Family(NamedTuple):
    """Official models with one conversion. Keys are a backbone's, without prefix.

    Attributes:
        name: Its name in the converter.
        title: Name of the models.
        code: The code bases of the checkpoints.
        marks: Patterns of the beginnings of official keys, one key for each. If the
            keys have all marks of two families, the one with more marks is taken.
        read: Takes official keys to their layout.
        rows: Takes a layout to rows. Rows are complete, so that they show which keys
            are missing.
        attentions: Classes of our attentions that are equivalent to the official ones.
        place: Key of the state dict in official files.
        back: Takes our keys to their layout in the official repository.
        buffers: Last names of official buffers that a model computes itself.
        head: Rows of a classifier's layers behind its backbone, with prefixes. The last
            one is the layer of classes, for which code bases have other names, too.
        heads: The same by the name of the layer of classes, where code bases have other
            names for the layers before it.
        is_inside: Whether official classifiers, too, have the backbone's prefix, and
            all their other layers that of a head.
        parts: Takes official keys behind the backbone of a detector or a segmentor, or
            ours, to rows of those that have other names in ours.
    """

    name: str
    title: str
    code: str
    marks: tuple[str, ...]
    read: Callable[[Keys], Layout]
    rows: Callable[[Layout], list[Row]]
    attentions: tuple[str, ...]
    place: str = 'model'
    back: Callable[[Keys], Layout] = our_layout
    buffers: tuple[str, ...] = ()
    head: tuple[Row, ...] = (HEAD,)
    heads: dict[str, tuple[Row, ...]] = {}
    is_inside: bool = False
    parts: Callable[[Keys], list[Row]] = no_rows


def scaling_rows(
    layout: Layout,
    change: Callable[[Tensor], Tensor] = unchanged,
    undo: Callable[[Tensor], Tensor] = unchanged,
) -> tuple[Row, ...]:
    """Return rows of a block's AttnScale and FeatScale vectors, if the model has them.

    ``change`` takes an official FeatScale vector to ours, ``undo`` back.
    """
    rows = ()
    if 'attn_scale' in layout.scales:
        rows += (Row('attn.omega', 'attn.lamb'),)
    if 'feat_scale' in layout.scales:
        rows += (
            Row('feat_scale.dc_scale', 'lamb1', change=change, undo=undo),
            Row('feat_scale.hc_scale', 'lamb2', change=change, undo=undo),
        )
    return rows


def stage_rows(
    depths: tuple[int, ...],
    downsample: str,
    merging: Iterable[Row],
    block: Iterable[Row],
) -> list[Row]:
    """Return rows of the blocks of a pyramid, and of the embeddings between its stages,
    whose official names follow ``downsample``."""
    rows = []
    for i, depth in enumerate(depths):
        if i:
            official = f'layers.{i - 1}.{downsample}'
            rows += nested(f'stages.{i}.embedding.', official, merging)
        for j in range(depth):
            inner = f'{i}.blocks.{j}.'
            rows += nested(f'stages.{inner}', f'layers.{inner}', block)
    return rows
