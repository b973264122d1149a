"""Rows of last layers for the classes that a checkpoint and a model share.

A last layer has a row for each class, for each anchor and class, or for each class and
coordinate of its box; the one of a softmax has a row for the background, the last. A
checkpoint of other classes has other rows. Legend: C classes, A anchors.

layer                                       rows of its weight and bias
fc_cls, cls_embed, softmax                  C + 1, the background last
fc_reg of a box for each class              4 of each class
retina_cls and others with anchors          C of each anchor
conv_seg, conv_logits, fc of a classifier   C
"""

import re
from collections.abc import Sequence
from typing import NamedTuple, Optional

from torch import Tensor, nn

from .class_names import match_classes
from .fitting import renamed_entries
from .rows import StateDict

# last layers, where shapes do not tell: those of detectors, segmentors, classifiers
LAST = re.compile(
    r'(.*_)?(cls|logits|seg|cls_embed|cls_score|cls_out|cls_branches|label_embedding)'
    r'|fc_reg|fc_cls_ref|classifier|fc|head'
)
# of all classes together
SHARED = re.compile(r'(^|\.)(rpn|rpn_head)\.')
WITH_BACKGROUND = re.compile(r'fc_cls|cls_embed')
OF_BOXES = re.compile(r'(^|_)reg$|bbox')


class ClassRows(NamedTuple):
    """What a model takes of a checkpoint's rows.

    Attributes:
        classes: Pairs of positions of classes that both have, ours first.
        entries: Entries of last layers with these rows; other rows are the model's own.
    """

    classes: dict[int, int]
    entries: StateDict


class Layout(NamedTuple):
    """How rows belong to classes: ``groups`` of rows for each class, and ``others``
    rows in a group that belong to none; groups come first or classes do."""

    groups: int
    others: int
    classes_first: bool


def carry_rows(
    model: nn.Module, weights: StateDict, ours: Sequence[str], theirs: Sequence[str]
) -> ClassRows:
    """Find the rows of a checkpoint for the classes of a model.

    Args:
        model: Any detector, segmentor or classifier, with its initial values.
        weights: Entries of the checkpoint, by the model's names.
        ours: Classes of the model, in the order of labels.
        theirs: Classes of the checkpoint.

    Returns:
        The classes that both have, and entries of the last layers: none if the classes
        are the same, or all others and in another number.
    """
    if list(ours) == list(theirs):
        return ClassRows({}, {})
    classes = match_classes(ours, theirs)
    entries: StateDict = {}
    for key, here in model.state_dict().items():
        there = weights.get(key)
        if not isinstance(here, Tensor) or there is None:
            continue
        layout = layout_of(key, here, there, len(ours), len(theirs))
        if layout and here.shape == there.shape:
            layout = layout_by_name(model, key, len(here), len(ours))
        if layout and classes:
            entries[key] = with_rows(here, there, layout, classes)
        elif layout and here.shape == there.shape:
            entries[key] = here.clone()  # of other classes, that have the same number
    return ClassRows(classes if entries else {}, entries)


def layout_of(
    key: str, here: Tensor, there: Tensor, num: int, other: int
) -> Optional[Layout]:
    """Return the rows of an entry of a model with ``num`` classes, and of a checkpoint
    with ``other`` classes; None if it is not one of a last layer."""
    if not here.dim() or here.shape[1:] != there.shape[1:] or SHARED.search(key):
        return None
    first = bool(OF_BOXES.search(layer_name(key)))
    rows, rows_there = len(here), len(there)
    if num == other and rows == rows_there and LAST.fullmatch(layer_name(key)):
        return Layout(1, 0, first)
    if num == other:
        return None
    groups, left = divmod(rows - rows_there, num - other)
    if left or groups < 1:
        return None
    others, left = divmod(rows - groups * num, groups)
    return Layout(groups, others, first) if not left and others in (0, 1) else None


def layout_by_name(model: nn.Module, key: str, rows: int, num: int) -> Optional[Layout]:
    """Return the rows of a last layer of ``num`` classes, which a checkpoint has in the
    same number; None if they are not of all classes."""
    name, parent = layer_name(key), key
    others = int(bool(WITH_BACKGROUND.fullmatch(name)))
    while parent:  # heads with anchors know it
        parent = parent.rpartition('.')[0]
        channels = getattr(model.get_submodule(parent), 'cls_out_channels', None)
        if isinstance(channels, int):
            others = channels - num
            break
    first = bool(OF_BOXES.search(name))
    groups, left = divmod(rows, num + (0 if first else others))
    return None if left else Layout(groups, 0 if first else others, first)


def layer_name(key: str) -> str:
    """Return the name of the layer that an entry belongs to, without numbers."""
    words = [word for word in key.split('.')[:-1] if not word.isdigit()]
    return words[-1] if words else key


def with_rows(
    here: Tensor, there: Tensor, layout: Layout, classes: dict[int, int]
) -> Tensor:
    """Return a model's entry with the rows of classes that a checkpoint has."""
    groups, others, classes_first = layout
    new = here.clone()
    if classes_first:
        ours = new.view(-1, groups, *new.shape[1:]).transpose(0, 1)
        theirs = there.reshape(-1, groups, *there.shape[1:]).transpose(0, 1)
    else:
        ours = new.view(groups, -1, *new.shape[1:])
        theirs = there.reshape(groups, -1, *there.shape[1:])
    theirs = theirs.to(here)
    for i, j in classes.items():
        ours[:, i] = theirs[:, j]
    if others:
        ours[:, -1] = theirs[:, -1]
    return new


def take_rows(
    model: nn.Module, checkpoint: dict, ours: Sequence[str], theirs: Sequence[str]
) -> ClassRows:
    """Give a checkpoint the rows of last layers that a model has.

    Args:
        model: A model with its initial values; it does not change.
        checkpoint: The content of a file, which changes.
        ours: Classes of the model, in the order of labels.
        theirs: Classes of the checkpoint.

    Returns:
        See :func:`carry_rows`.

    Raises:
        ValueError: If it holds an official backbone that is incomplete.
    """
    weights = renamed_entries(model, checkpoint)
    rows = carry_rows(model, weights, ours, theirs)
    if not rows.entries:
        return rows
    state_dict = checkpoint.get('state_dict', checkpoint)
    if rows.entries.keys() <= state_dict.keys():
        state_dict.update(rows.entries)
    else:  # official names, or those of a wrapper
        checkpoint['state_dict'] = {**weights, **rows.entries}
    return rows
