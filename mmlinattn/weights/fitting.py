"""Compares a checkpoint with the model that it is for.

MMEngine loads what fits and logs the rest, whatever that is. A test of a checkpoint
of another model then reports the accuracy of random weights.
"""

import re
from copy import deepcopy
from typing import Any, NamedTuple

from torch import nn

from .conversion import as_whole_classifier, find_state_dict, shortlist
from .rows import StateDict

MISMATCH = re.compile(r'size mismatch for (\S+): .*?\[(.*?)\].*?\[(.*?)\]')
# of batches: torch makes up those that a checkpoint lacks, and alone they are nothing
COUNTER = 'num_batches_tracked'


class Fit(NamedTuple):
    """What a checkpoint has of a model.

    Attributes:
        state_dict: What loads: the model's names, and tensors of the model's shapes,
            after official weights are renamed and tables resized.
        missing: Names in the model that the checkpoint lacks.
        mismatched: Names in the model of what has another shape in the checkpoint,
            and both shapes.
        unexpected: Names in the checkpoint that the model has no place for.
        extra: Those of them that are in a part that the model has, as the blocks of a
            deeper backbone are.
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
        """Whether the checkpoint is one of this model; other parts do no harm."""
        return not (self.missing or self.mismatched or self.extra or self.broken)

    def describe(self) -> str:
        """What does not fit, in one line; empty if the checkpoint is whole."""
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
    """Find out what of a checkpoint loads into a model.

    Args:
        model: Any model. It stays as it is: ``model.load_state_dict(
            found.state_dict, strict=False)`` loads what was found.
        checkpoint: What a file holds, as MMEngine takes it: a state dict, bare or
            under `state_dict`. A classifier takes official ones too, of any place.

    Raises:
        ValueError: If it holds no weights; or those of an official backbone that is
            not whole, or that the whole model can't take.
    """
    if hasattr(getattr(model, 'head', None), 'fc'):
        checkpoint = as_whole_classifier(checkpoint)
    return fit_weights(model, find_state_dict(checkpoint, places=('state_dict',))[0])


def fit_weights(model: nn.Module, weights: StateDict) -> Fit:
    """What :func:`fit` does, with a state dict."""
    # a copy without memory for parameters, into which the tensors are put
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
