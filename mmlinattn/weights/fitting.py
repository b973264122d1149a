"""Compares a checkpoint with a model.

MMEngine loads the entries that fit and only logs the others. A test of a checkpoint of
another model then reports the accuracy of random weights.
"""

import re
from copy import deepcopy
from typing import Any, NamedTuple

from torch import nn

from .conversion import as_whole_classifier, find_state_dict, shortlist
from .rows import StateDict

MISMATCH = re.compile(r'size mismatch for (\S+): .*?\[(.*?)\].*?\[(.*?)\]')
# torch adds this counter of batches if a checkpoint lacks it; alone it is no weight
COUNTER = 'num_batches_tracked'


class Fit(NamedTuple):
    """The comparison of a checkpoint with a model.

    Attributes:
        state_dict: Entries that load, with the model's names and shapes, after
            official weights are renamed and tables resized.
        missing: Names in the model that the checkpoint lacks.
        mismatched: Names in the model that have another shape in the checkpoint, and
            both shapes.
        unexpected: Names in the checkpoint that the model lacks.
        extra: Unexpected names in a part that the model has, such as the blocks of a
            deeper backbone.
        broken: Names of entries with NaN or infinite values.
    """

    state_dict: StateDict
    missing: list[str]
    mismatched: dict[str, str]
    unexpected: list[str]
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
    # a copy without memory for parameters, which receives the tensors
    empty: dict[int, Any] = {
        id(x): nn.Parameter(x.detach().to('meta'), x.requires_grad)
        for x in model.parameters()
    }
    copy = deepcopy(model, empty)
    missing, unexpected = [], []

    def keep(module: nn.Module, keys: Any) -> None:
        missing.extend(keys.missing_keys)
        unexpected.extend(keys.unexpected_keys)

    copy.register_load_state_dict_post_hook(keep)
    mismatched = {}
    try:
        copy.load_state_dict(weights, strict=False, assign=True)
    except RuntimeError as error:
        for key, theirs, ours in MISMATCH.findall(str(error)):
            mismatched[key] = f'({theirs}) there, ({ours}) here'
        if not mismatched:
            raise
    loaded = {
        key: value
        for key, value in copy.state_dict().items()
        if key not in mismatched and key not in missing
    }
    if all(key.endswith(COUNTER) for key in loaded):
        loaded = {}
    parameters = dict(model.named_parameters())
    parts = {key.partition('.')[0] for key in model.state_dict()}
    return Fit(
        loaded,
        missing,
        mismatched,
        unexpected,
        [
            key
            for key in unexpected
            if key.partition('.')[0] in parts
            and (key not in weights or weights[key].is_floating_point())
        ],
        [
            key
            for key, x in loaded.items()
            if x.is_floating_point()
            and not x.is_meta
            and (x.isnan().any() or (key in parameters and x.isinf().any()))
        ],
    )
