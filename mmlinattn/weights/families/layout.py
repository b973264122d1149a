"""What a family of official models is, and what the files of families share."""

from typing import Callable, NamedTuple

from torch import Tensor

from ..rows import LINEAR, Keys, Row, count_blocks, unchanged

# our option, our last names, official last names
SCALES = {
    'attn_scale': (('omega',), ('lamb',)),
    'feat_scale': (('dc_scale', 'hc_scale'), ('lamb1', 'lamb2')),
}
# of a block with one projection, by our names; most code bases have these
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
    """How a code base names and orders the modules of one backbone.

    Attributes:
        style: 'official' for the names that the official repositories share with
            timm, 'timm' where timm has moved on, 'mm' for OpenMMLab's.
        depths: Blocks of each stage; of a plain model its blocks, of CaiT then its
            class layers.
        last_norm: Name of the norm of the last map.
        norms: Numbers, from 0, of the earlier maps that have a norm.
        scales: 'attn_scale', 'feat_scale' or both, where there are such vectors.
        own: Of each stage, how many blocks, from the first on, have an attention that
            the family puts in the place of a plain model's. Default: none.
    """

    style: str
    depths: tuple[int, ...]
    last_norm: str = 'norm'
    norms: tuple[int, ...] = ()
    scales: tuple[str, ...] = ()
    own: tuple[int, ...] = ()

    def has_own(self, stage: int, block: int) -> bool:
        """Whether a block has such an attention."""
        return bool(self.own) and block < self.own[stage]


def find_scales(keys: Keys, official: bool) -> tuple[str, ...]:
    """Options whose vectors are among the keys, official ones or ours."""
    last_names = {key.rpartition('.')[2] for key in keys}
    return tuple(
        option for option, names in SCALES.items() if last_names & {*names[official]}
    )


def find_norms(keys: Keys, stages: int, first: int = 0) -> tuple[str, tuple[int, ...]]:
    """Name of the norm of the last map, and the earlier maps that have one.

    Detectors and segmentors number their norms, from ``first``; classifiers have one.
    """
    names = [f'norm{i + first}' for i in range(stages)]
    found = [i for i, name in enumerate(names) if f'{name}.weight' in keys]
    last = names[-1] if stages - 1 in found else 'norm'
    return last, tuple(i for i in found if i < stages - 1)


def is_mm(keys: Keys) -> bool:
    """Whether a backbone's modules have OpenMMLab's names."""
    return any(key.startswith('patch_embed.projection.') for key in keys)


def our_layout(keys: Keys, first_norm: int = 0) -> Layout:
    """Layout that the official repository has for one of our backbones.

    ``first_norm`` is the number that it gives the norm of the first map.
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
    return Layout('official', tuple(depths), last_norm, norms, scales)


class Family(NamedTuple):
    """Official models that convert alike. Keys are those of a backbone, no prefix.

    Attributes:
        name: As the converter knows it.
        title: Name of the models.
        code: Whose checkpoints these are.
        marks: How official keys begin: patterns, one key for each. Of two families
            that have all their marks among the keys, the one with more marks is it.
        read: From official keys to their layout.
        rows: From a layout to rows. Rows are complete, so that they show which keys
            are missing.
        attentions: Classes of our attentions that do what the official ones do.
        place: Where the official code looks for the state dict in its files.
        back: From our keys to the layout that the official repository has for them.
        buffers: Last names of official buffers that a model computes itself.
        head: Rows of what a classifier has behind its backbone, with prefixes. The last
            one is the layer of classes, for which code bases have other names, too.
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


def scaling_rows(
    layout: Layout,
    change: Callable[[Tensor], Tensor] = unchanged,
    undo: Callable[[Tensor], Tensor] = unchanged,
) -> tuple[Row, ...]:
    """Rows of a block's AttnScale and FeatScale vectors, if the model has them.

    ``change`` leads from an official FeatScale vector to ours, ``undo`` back.
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
