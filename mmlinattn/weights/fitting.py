"""Compares a checkpoint with a model, entry by entry.

MMEngine loads the entries that fit and only logs the others. A test of a checkpoint of
another model then reports the accuracy of random weights.
"""

from typing import NamedTuple

from torch import Tensor, nn

from .conversion import as_whole_classifier, find_state_dict, shortlist
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
        """Lists the entries that do not fit, in one line; '' if all fit."""
        parts = {
            'missing': self.missing,
            'of other shapes': [f'{k} {text}' for k, text in self.mismatched.items()],
            'with NaN or infinite values': self.broken,
            'that the model has no place for': self.extra,
        }
        return '; '.join(
            f'{shortlist(names)} {text}' for text, names in parts.items() if names
        )


def fit(model: nn.Module, checkpoint: dict) -> Fit:
    """Find the entries of a checkpoint that load into a model.

    Args:
        model: Any model. It does not change: ``model.load_state_dict(
            found.state_dict, strict=False)`` loads the entries.
        checkpoint: The content of a file: a state dict, bare or under
            `state_dict`. For a classifier, also an official one, under any key.

    Raises:
        ValueError: If it holds no weights, or an official backbone that is incomplete
            or that the whole model can't take.
    """
    if hasattr(getattr(model, 'head', None), 'fc'):
        checkpoint = as_whole_classifier(checkpoint)
    return fit_weights(model, find_state_dict(checkpoint, places=('state_dict',))[0])


def fit_weights(model: nn.Module, weights: StateDict) -> Fit:
    """:func:`fit` with a state dict."""
    theirs = adapt_state_dict(model, weights)
    ours = {k: x for k, x in model.state_dict().items() if isinstance(x, Tensor)}
    common = [key for key in ours if key in theirs]
    mismatched = {
        key: f'{tuple(theirs[key].shape)} there, {tuple(ours[key].shape)} here'
        for key in common
        if theirs[key].shape != ours[key].shape
    }
    loaded = {key: theirs[key] for key in common if key not in mismatched}
    parts = {key.partition('.')[0] for key in ours}
    parameters = dict(model.named_parameters())
    return Fit(
        loaded,
        [key for key in ours if not (key in theirs or key.endswith(COUNTER))],
        mismatched,
        [
            key
            for key, x in theirs.items()
            if key not in ours
            and key.partition('.')[0] in parts
            and x.is_floating_point()
        ],
        # masks, which are buffers, have infinite values
        [
            k
            for k, x in loaded.items()
            if is_broken(x, may_be_infinite=k not in parameters)
        ],
    )


def adapt_state_dict(model: nn.Module, weights: StateDict) -> StateDict:
    """A state dict as a model takes it: its modules' hooks give official weights the
    model's names, and resize tables."""
    adapted = dict(weights)
    parts = {name for name, _ in (*model.named_children(), *model.named_parameters())}
    elsewhere = [key for key in weights if key.partition('.')[0] not in parts]
    for name, module in model.named_modules():
        for hook in module._load_state_dict_pre_hooks.values():
            hook(adapted, name and f'{name}.', {}, False, [], elsewhere, [])
    return adapted


def is_broken(x: Tensor, may_be_infinite: bool) -> bool:
    """True for values that no training leaves."""
    if not x.is_floating_point() or x.is_meta:
        return False
    return bool((x.isnan() if may_be_infinite else ~x.isfinite()).any())
