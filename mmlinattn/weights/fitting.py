"""Compares a checkpoint with a model, entry by entry.

MMEngine loads the entries that fit and only logs the others. A test of a checkpoint of
another model then reports the accuracy of random weights.
"""

import copy
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.module import _IncompatibleKeys

from mmlinattn.utils.names import shortlist

from .conversion import find_state_dict
from .rows import StateDict

# torch adds this counter of batches if a checkpoint lacks it
COUNTER = 'num_batches_tracked'


class Fit(NamedTuple):
    """The comparison of a checkpoint with a model.

    Attributes:
        state_dict: Entries that load, with the model's names and shapes, after
            official weights are renamed and tables resized.
        missing: Names in the model that the checkpoint lacks.
        mismatched: Names in the model that have another shape in the checkpoint, and
            both shapes.
        extra: Names in the checkpoint that the model lacks, in a part that it has, such
            as the blocks of a deeper backbone.
        broken: Names of entries with NaN or infinite values.
    """

    state_dict: StateDict
    missing: list[str]
    mismatched: dict[str, str]
    extra: list[str]
    broken: list[str]

    @property
    def whole(self) -> bool:
        """True if the checkpoint is one of this model; other parts do no harm."""
        return not (self.missing or self.mismatched or self.extra or self.broken)

    def describe(self) -> str:
        """List the entries that do not fit, in one line; '' if all fit."""
        parts = {
            'missing': self.missing,
            'of other shapes': [f'{k} {text}' for k, text in self.mismatched.items()],
            'with NaN or infinite values': self.broken,
            'that the model has no place for': self.extra,
        }
        return '; '.join(
            f'{shortlist(names)} {text}' for text, names in parts.items() if names
        )


def fit(model: nn.Module, checkpoint: dict, load: bool = False) -> Fit:
    """Find the entries of a checkpoint that load into a model.

    Args:
        model: Any model.
        checkpoint: The content of a file: a state dict, bare or under
            `state_dict`. For a classifier with one of our backbones, also an official
            one, under any key.
        load: Also load them; otherwise into a copy of the model, which does not change.

    Raises:
        ValueError: If it holds no weights, or an official backbone that is incomplete
            or that the whole model can't take.
    """
    weights = checkpoint.get('state_dict', checkpoint)
    if not isinstance(weights, Mapping):
        weights = {}
    fitted = fit_weights(model, weights, load)
    if not fitted.state_dict:  # an error, if there is none in it
        find_state_dict(checkpoint, places=('state_dict',))
    return fitted


def renamed_entries(model: nn.Module, checkpoint: dict) -> StateDict:
    """Return the entries of a checkpoint that a model has, by its names; their shapes
    may be others. The model does not change.

    Args:
        model: Any model.
        checkpoint: The content of a file.

    Raises:
        ValueError: If it holds an official backbone that is incomplete.
    """
    weights = checkpoint.get('state_dict', checkpoint)
    entries = {re.sub(r'^module\.', '', key): entry for key, entry in weights.items()}
    metadata = getattr(weights, '_metadata', None) or {}
    renamed, _, _ = load_entries(copy.deepcopy(model), entries, metadata)
    return renamed


def fit_weights(model: nn.Module, weights: StateDict, load: bool = False) -> Fit:
    """:func:`fit` with a state dict."""
    ours = {
        key: entry
        for key, entry in model.state_dict().items()
        if isinstance(entry, Tensor)
    }
    # sizes before the weights are loaded
    shapes = {key: entry.shape for key, entry in ours.items()}
    # as MMEngine removes it
    entries = {re.sub(r'^module\.', '', key): entry for key, entry in weights.items()}
    metadata = getattr(weights, '_metadata', None) or {}
    loading = model if load else copy.deepcopy(model)
    theirs, missing, unexpected = load_entries(loading, entries, metadata)
    mismatched = other_shapes(theirs, shapes)
    loaded = {
        key: theirs[key] for key in ours if key in theirs and key not in mismatched
    }
    return Fit(
        state_dict=loaded,
        missing=missing_entries(missing, ours, entries),
        mismatched=mismatched,
        extra=extra_entries(unexpected, ours),
        broken=broken_entries(loaded, model),
    )


def other_shapes(theirs: StateDict, shapes: Mapping[str, torch.Size]) -> dict[str, str]:
    """Return names of entries whose shapes differ from a model's, and both shapes."""
    return {
        key: f'{tuple(theirs[key].shape)} there, {tuple(shape)} here'
        for key, shape in shapes.items()
        if key in theirs and theirs[key].shape != shape
    }


def missing_entries(
    missing: list[str], ours: StateDict, entries: Mapping[str, Any]
) -> list[str]:
    """Return names in a model that a checkpoint lacks. What a module drops itself, it
    does not miss."""
    return [
        key
        for key in missing
        if key in ours and key not in entries and not key.endswith(COUNTER)
    ]


def broken_entries(loaded: StateDict, model: nn.Module) -> list[str]:
    """Return names of entries with values that no training leaves; masks, which are
    buffers, have infinite ones."""
    parameters = {name for name, _ in model.named_parameters()}
    return [
        key
        for key, entry in loaded.items()
        if is_broken(entry, may_be_infinite=key not in parameters)
    ]


def extra_entries(unexpected: dict[str, Any], ours: StateDict) -> list[str]:
    """Return names of weights that a model lacks, in parts that it has."""
    parts = {key.partition('.')[0] for key in ours}
    return [
        key
        for key, entry in unexpected.items()
        if key.partition('.')[0] in parts
        and isinstance(entry, Tensor)
        and entry.is_floating_point()
    ]


def load_entries(
    model: nn.Module, weights: dict[str, Any], metadata: Mapping[str, dict]
) -> tuple[StateDict, list[str], dict[str, Any]]:
    """Load a state dict as MMEngine does: modules may change names and tensors first,
    by hooks and methods, which know their ``metadata``, and then, by hooks, what they
    miss.

    Returns:
        Entries by the model's names, names that are missing, and other entries.
    """
    loaded: StateDict = {}
    missing: list[str] = []
    unexpected: list[str] = []
    others: dict[str, Any] = {}

    def load(module: nn.Module, entries: dict[str, Any], prefix: str) -> None:
        before, version = len(unexpected), metadata.get(prefix[:-1], {})
        # a BatchNorm adds it
        counted = not isinstance(module, _BatchNorm) or prefix + COUNTER in entries
        errors: list[str] = []
        module._load_from_state_dict(
            entries, prefix, version, True, missing, unexpected, errors
        )
        others.update((name, entries.get(name)) for name in unexpected[before:])
        for name in (*module._parameters, *module._buffers):
            here = isinstance(entries.get(prefix + name), Tensor)
            if here and (counted or name != COUNTER):
                loaded[prefix + name] = entries[prefix + name]
        for name, child in module._modules.items():
            if child is not None:
                below = f'{prefix}{name}.'
                load(child, start_of(entries, below), below)
        keys = _IncompatibleKeys(missing, unexpected)
        for hook in module._load_state_dict_post_hooks.values():
            hook(module, keys)

    load(model, dict(weights), '')
    return (
        loaded,
        missing,
        {key: entry for key, entry in others.items() if key in unexpected},
    )


def start_of(entries: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the entries under a prefix."""
    return {key: entry for key, entry in entries.items() if key.startswith(prefix)}


def is_broken(entry: Tensor, may_be_infinite: bool) -> bool:
    """Return True for values that no training leaves."""
    if not entry.is_floating_point() or entry.is_meta:
        return False
    return bool((entry.isnan() if may_be_infinite else ~entry.isfinite()).any())
