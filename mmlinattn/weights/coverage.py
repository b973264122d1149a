"""Compares a checkpoint with the whole model that it is to be loaded into.

MMEngine loads what fits and logs the rest, whatever that is. A test of a checkpoint
of another model then reports the accuracy of random weights.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from .conversion import some
from .pretrained import explain_unexpected

MISFIT = re.compile(
    r'size mismatch for (\S+): copying a param with shape torch\.Size\((.*?)\).*?'
    r'torch\.Size\((.*?)\)',
    re.S,
)
# what a model computes itself, or may lack
COUNTERS = 'num_batches_tracked'


class Coverage(NamedTuple):
    """What a checkpoint has of a model.

    Attributes:
        total: How many entries the model has, counters of batches aside.
        missing: Entries that the checkpoint lacks.
        misfits: Entries that have another shape there, with both shapes.
        broken: Entries with NaN or infinite values.
        unused: Entries of the checkpoint that the model has no place for.
        extra: Those of them that are in a part that the model has, as the blocks of a
            deeper backbone are.
        advice: What to do with this checkpoint instead, or an empty text.
    """

    total: int
    missing: list[str]
    misfits: list[str]
    broken: list[str]
    unused: list[str]
    extra: list[str]
    advice: str = ''

    @property
    def whole(self) -> bool:
        """Whether the checkpoint is one of this model."""
        return not (self.missing or self.misfits or self.broken or self.extra)

    @property
    def taken(self) -> int:
        """How many entries of the model come from the checkpoint."""
        return self.total - len(self.missing) - len(self.misfits)

    def describe(self) -> str:
        """What does not fit, in words."""
        parts = {
            'missing': self.missing,
            'of other shapes': self.misfits,
            'with NaN or infinite values': self.broken,
            'that the model has no place for': self.extra,
        }
        return '; '.join(
            f'{some(names)} {text}' for text, names in parts.items() if names
        )


def find_weights(checkpoint: Any) -> dict[str, torch.Tensor]:
    """The entries that MMEngine would load into a whole model.

    Args:
        checkpoint: What a file holds.

    Raises:
        ValueError: If there are none, or a key is no text.
    """
    found = checkpoint.get('state_dict', checkpoint)
    weights = {}
    if isinstance(found, Mapping):
        wrong = [key for key in found if not isinstance(key, str)]
        if wrong:
            raise ValueError(f'keys of a state dict are text, and it has {wrong[0]!r}')
        weights = {
            re.sub(r'^module\.', '', key): value
            for key, value in found.items()
            if isinstance(value, torch.Tensor)
        }
    if not weights:
        raise ValueError(
            f'there are no weights, bare or under state_dict; number of keys: '
            f'{some(checkpoint)}'
        )
    return weights


def cover(model: nn.Module, checkpoint: Any) -> Coverage:
    """Find out how much of a model a checkpoint covers.

    Args:
        model: The model; its weights change.
        checkpoint: What a file holds.

    Raises:
        ValueError: If it holds no weights, or those of an official backbone that is
            not whole.
    """
    weights = find_weights(checkpoint)
    ours = model.state_dict()
    try:
        misfits, missing, unused, advice = *load(model, weights), ''
    except ValueError as error:
        # a raw official checkpoint, about which a backbone has a word
        advice = explain_unexpected(weights) or ''
        if not advice:
            raise ValueError(str(error)) from error
        misfits, missing, unused = {}, list(ours), list(weights)
    parameters = dict(model.named_parameters())
    broken = [
        key
        for key, value in weights.items()
        if key in ours
        and value.is_floating_point()
        and (value.isnan().any() or (key in parameters and value.isinf().any()))
    ]
    parts = {key.partition('.')[0] for key in ours}
    return Coverage(
        sum(not key.endswith(COUNTERS) for key in ours),
        [key for key in missing if not key.endswith(COUNTERS)],
        [
            f'{key} {theirs} there, {here} here'
            for key, (theirs, here) in misfits.items()
        ],
        broken,
        unused,
        [
            key
            for key in unused
            if key.partition('.')[0] in parts and weights[key].is_floating_point()
        ],
        advice,
    )


def load(
    model: nn.Module, weights: Mapping[str, torch.Tensor]
) -> tuple[dict[str, tuple[str, str]], list[str], list[str]]:
    """Load what fits.

    Returns:
        Shapes of entries that do not fit, there and here; missing keys; unused ones.
    """
    try:
        keys = model.load_state_dict(dict(weights), strict=False)
        return {}, keys.missing_keys, keys.unexpected_keys
    except RuntimeError as error:
        misfits = {
            key: (f'({theirs.strip("[]")})', f'({here.strip("[]")})')
            for key, theirs, here in MISFIT.findall(str(error))
        }
        if not misfits:
            raise
    rest = {key: value for key, value in weights.items() if key not in misfits}
    more, missing, unused = load(model, rest)
    return {**misfits, **more}, [x for x in missing if x not in misfits], unused
