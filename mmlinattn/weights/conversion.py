"""Converts the state dict of an official model to ours, and back."""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Optional

from torch import Tensor

from mmlinattn.utils.names import inside, shortlist

from .families import FAMILIES, HEAD, Family, Layout
from .rows import LINEAR, Keys, Row, StateDict, nested

PREFIX = 'backbone.'
OURS = 'mmlinattn'
COMMAND = 'mim run mmlinattn convert_official'
LIGHTNING = 'model.'  # its prefix
# official code and older timm; newer timm; mmpretrain's plain models
HEADS: tuple[str, ...] = ('head', 'head.fc', 'head.layers.head')
HEADS += tuple(head for family in FAMILIES.values() for head in family.heads)
STATE_DICTS = ('state_dict', 'model')
# of DataParallel and of torch.compile, in any order
WRAPPERS = re.compile(r'^((module|_orig_mod)\.)+')
AVERAGES = ('state_dict_ema', 'model_ema')


class Conversion(NamedTuple):
    """The conversion of one model, with the sources of every key."""

    layout: Layout  # of the official backbone
    prefix: str  # of its names
    head: Optional[str]  # official name of a classifier's head
    rows: list[Row]  # of all modules, with prefixes

    def sources(self) -> dict[str, list[str]]:
        """Return the official keys of each of our keys."""
        return {ours: keys for row in self.rows for ours, keys in row.sources().items()}

    def apply(self, official: StateDict) -> StateDict:
        """Our state dict, made of an official one."""
        return {
            ours: row.forward([official[key] for key in keys])
            for row in self.rows
            for ours, keys in row.sources().items()
        }

    def describe(self) -> dict:
        """Return the layout with which :func:`convert_back` restores the same keys."""
        return dict(self.layout._asdict(), prefix=self.prefix, head=self.head)


def without_wrappers(state_dict: StateDict) -> StateDict:
    """Return a state dict without the prefixes of DataParallel and torch.compile."""
    return {WRAPPERS.sub('', key): value for key, value in state_dict.items()}


def find_state_dict(
    checkpoint: dict,
    ema: bool = False,
    places: Collection[str] = STATE_DICTS + AVERAGES,
) -> tuple[StateDict, bool]:
    """Return the state dict in a checkpoint, without the prefixes of wrappers.

    Args:
        checkpoint: A state dict, bare or under one of ``places``.
        ema: Take the moving average, under `state_dict_ema` or `model_ema`, even if
            there is another state dict.
        places: Keys to look under, in this order.

    Returns:
        The tensors by name, and whether they are the moving average.

    Raises:
        ValueError: If there are none.
    """
    places = AVERAGES if ema else places
    place = next((place for place in places if place in checkpoint), None)
    state_dict = checkpoint.get(place, None if ema else checkpoint)
    if not isinstance(state_dict, Mapping):
        state_dict = {}
    tensors = {
        key: value
        for key, value in state_dict.items()
        if isinstance(key, str) and isinstance(value, Tensor)
    }
    tensors = without_wrappers(tensors)
    if not tensors:
        raise ValueError(
            f'there are no weights: no state dict {"" if ema else "bare or "}under '
            f'{" or ".join(places)}; number of keys: {shortlist(checkpoint)}'
        )
    return tensors, place in AVERAGES


def recognize(keys: Keys) -> Optional[str]:
    """Return the family of a state dict's keys.

    Args:
        keys: Names in a state dict, those of the backbone with or without the
            prefix `backbone.`.

    Returns:
        One of FAMILIES, such as 'swin'; 'mmlinattn' for one of our backbones; None for
        anything else.
    """
    names = {key.partition(PREFIX)[2] for key in keys if key.startswith(PREFIX)}
    names = names or set(keys)
    marks = {name: family.marks for name, family in FAMILIES.items()}
    marks[OURS] = (r'(stages\.0\.embedding|patch_embed\.layer\.0|stem\.0\.0\.0)\.',)
    families = [
        family
        for family, patterns in marks.items()
        if all(any(re.match(mark, name) for name in names) for mark in patterns)
    ]
    return max(families, key=lambda family: len(marks[family]), default=None)


def plan(
    family: str, layout: Layout, prefix: str, head: Optional[str], others: Keys
) -> Conversion:
    """Return the conversion of a backbone and a head; other parts do not change."""
    rows = nested(PREFIX, prefix, FAMILIES[family].rows(layout))
    rows += head_rows(family, head) + part_rows(family, others)
    return Conversion(layout=layout, prefix=prefix, head=head, rows=rows)


def head_rows(family: str, head: Optional[str]) -> list[Row]:
    """Return rows of a classifier's layers behind its backbone, the last being
    ``head``."""
    if not head:
        return []
    *rows, last = FAMILIES[family].heads.get(head, FAMILIES[family].head)
    return [*rows, last._replace(official=head)]


def part_rows(family: str, others: Keys) -> list[Row]:
    """Return rows of other parts of a model, by their official keys or ours: all have
    other names in ours, or none has."""
    rows = FAMILIES[family].parts(others)
    if not rows:
        # what an official head has besides its rows is left over
        head = 'head.' if FAMILIES[family].is_inside else '.'
        rows = [Row(key, key) for key in others if not key.startswith(head)]
    return rows


def other_parts(keys: Keys, head: Keys) -> list[str]:
    """Return keys of OpenMMLab's models that belong to neither backbone nor
    ``head``."""
    return [key for key in keys if not key.startswith(PREFIX) and key not in head]


def check_keys(keys: Keys, expected: Keys, kind: str) -> None:
    """Raise an error unless these are the keys of a whole model."""
    missing = [key for key in expected if key not in keys]
    leftover = sorted(set(keys) - set(expected))
    if missing or leftover:
        raise ValueError(
            f'these are not the keys of a whole {kind}: missing '
            f'{shortlist(missing)}, left over {shortlist(leftover)}'
        )


def plan_conversion(state_dict: StateDict, family: str) -> Conversion:
    """Plan :func:`convert`, with every key accounted for."""
    prefix = PREFIX if inside(state_dict, PREFIX) else ''
    layout = FAMILIES[family].read(inside(state_dict, prefix))
    head = next(
        (name for name in HEADS if inside(state_dict, f'{name}.').keys() & set(LINEAR)),
        None,
    )
    sources = [row.sources() for row in head_rows(family, head)]
    behind = {key for source in sources for keys in source.values() for key in keys}
    others = other_parts(state_dict, behind) if prefix else []
    conversion = plan(family, layout, prefix, head, others)
    expected = [key for keys in conversion.sources().values() for key in keys]
    # a model computes these itself
    buffers = FAMILIES[family].buffers
    expected += [key for key in state_dict if key.rpartition('.')[2] in buffers]
    check_keys(state_dict, expected, f'official {family!r} model')
    return conversion


def convert(state_dict: StateDict, family: str) -> StateDict:
    """Rename and merge the weights of an official model.

    Args:
        state_dict: Official names and tensors, all of one model.
        family: Its family, as :func:`recognize` names it.

    Returns:
        Ours, with the prefixes `backbone.` and, if there is a head, `head.`.

    Raises:
        ValueError: If a key is missing or left over, or the kind of the model
            has no counterpart.
    """
    return plan_conversion(state_dict, family).apply(state_dict)


def convert_back(
    state_dict: StateDict, family: str, layout: Optional[dict] = None
) -> tuple[StateDict, Conversion]:
    """Give our weights their names in the official code.

    Buffers that the official code computes itself are ignored.

    Args:
        state_dict: Ours, under `backbone.` and other parts of a model.
        family: Their family.
        layout: The result of :meth:`Conversion.describe` when the weights were
            converted, to restore the same official keys. Default: the names of the
            official repository.

    Returns:
        The official state dict, and the conversion from it to ours.

    Raises:
        ValueError: If a key is missing or left over.
    """
    behind = {key for row in FAMILIES[family].head for key in row.sources()}
    others = other_parts(state_dict, behind)
    if layout is None:
        backbone = inside(state_dict, PREFIX)
        names = FAMILIES[family].back(backbone)
        prefix = PREFIX if others or FAMILIES[family].is_inside else ''
        is_classifier = f'{HEAD.ours}.weight' in state_dict
        head = FAMILIES[family].head[-1].official if is_classifier else None
    else:
        layout = dict(layout)
        prefix, head = layout.pop('prefix'), layout.pop('head')
        names = Layout(**layout)
    conversion = plan(family, names, prefix, head, others if prefix else [])
    check_keys(state_dict, conversion.sources(), f'{family!r} model of mmlinattn')
    official = {
        name: tensor
        for row in conversion.rows
        for ours, names in row.sources().items()
        for name, tensor in zip(names, row.backward(state_dict[ours]))
    }
    return official, conversion


def name_weights(
    content: dict, prefix: Optional[str] = None
) -> tuple[StateDict, Optional[Family], str]:
    """Return the weights in a checkpoint by our names, their official family if it is
    known, and what they are, for the end of an error message.

    Args:
        content: Of a file.
        prefix: Prefix of the backbone's keys, of weights that are not official ones.

    Raises:
        ValueError: If there are no weights, or not those of a whole official model.
    """
    state_dict, recognized = recognize_backbone(content, prefix)
    weights, family = rename(state_dict, recognized, content.get('meta'))
    origin = f'it has {shortlist(state_dict)}, {describe_origin(recognized, family)}'
    return weights, family, origin


def recognize_backbone(
    content: dict, prefix: Optional[str]
) -> tuple[StateDict, Optional[str]]:
    """Return the state dict in a checkpoint, without the prefixes of programs, and what
    :func:`recognize` says of it."""
    state_dict, _ = find_state_dict(content)
    recognized = recognize(state_dict)
    if not prefix and not recognized and inside(state_dict, LIGHTNING):
        prefix = LIGHTNING
    if prefix and recognized not in FAMILIES:  # they have no such prefix
        inner = inside(state_dict, f'{prefix.rstrip(".")}.')
        state_dict = without_wrappers(inner)
        recognized = recognize(state_dict)
    return state_dict, recognized


def rename(
    state_dict: StateDict, recognized: Optional[str], meta: Any
) -> tuple[StateDict, Optional[Family]]:
    """Return weights by our names, with every key of an official model accounted for,
    and their family, which the metadata of converted weights name."""
    if recognized in FAMILIES:
        return convert(state_dict, recognized), FAMILIES[recognized]
    if not inside(state_dict, PREFIX):
        state_dict = {f'{PREFIX}{key}': entry for key, entry in state_dict.items()}
    family = meta.get('family') if isinstance(meta, dict) else None
    return state_dict, FAMILIES.get(str(family))


def describe_origin(recognized: Optional[str], family: Optional[Family]) -> str:
    """Return what a checkpoint is, for the end of an error message."""
    if family:
        return f'weights of {family.title}'
    if recognized:
        return f'weights of {OURS}'
    known = '; '.join(f'{family.title} ({family.code})' for family in FAMILIES.values())
    return (
        f'not recognized: mmlinattn takes checkpoints of mmlinattn and of {known}; '
        f'see {COMMAND} --help'
    )
