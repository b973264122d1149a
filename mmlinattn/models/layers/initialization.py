"""Modules whose initial values a config names.

MMEngine's models and runners ask modules for ``init_weights()``, ``init_cfg`` and
``is_init``. Where MMEngine is loaded, it does the work, and notes in its log what set
each parameter. Without it, the few kinds that our models start from are here.
"""

import copy
import math
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Callable, Union

import torch
from torch import Tensor, nn

from mmlinattn.parts import type_name

InitConfig = Union[Mapping[str, Any], list[Mapping[str, Any]], None]


def _constant(weight: Tensor, val: float) -> None:
    nn.init.constant_(weight, val)


def _trunc_normal(
    weight: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0
) -> None:
    # as MMEngine draws in every version of PyTorch, whose own way has changed
    def share_below(bound: float) -> float:
        return (1 + math.erf((bound - mean) / std / math.sqrt(2))) / 2

    with torch.no_grad():
        weight.uniform_(2 * share_below(a) - 1, 2 * share_below(b) - 1).erfinv_()
        weight.mul_(std * math.sqrt(2)).add_(mean).clamp_(a, b)


def _xavier(weight: Tensor, gain: float = 1.0, distribution: str = 'normal') -> None:
    is_uniform = distribution == 'uniform'
    fill = nn.init.xavier_uniform_ if is_uniform else nn.init.xavier_normal_
    fill(weight, gain=gain)


# what an entry of init_cfg does to weights; all of these are MMEngine's kinds, too
KINDS: dict[str, Callable[..., None]] = {
    'Constant': _constant,
    'TruncNormal': _trunc_normal,
    'Xavier': _xavier,
}
# entries that MMEngine alone reads
OF_MMENGINE = {'bias_prob', 'override'}


def entries_of(init_cfg: InitConfig) -> list[Any]:
    """Return an ``init_cfg`` as a list of entries."""
    if not init_cfg:
        return []
    return [init_cfg] if isinstance(init_cfg, Mapping) else list(init_cfg)


def is_pretrained(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of ``init_cfg`` names weights; its type may be MMEngine's
    class."""
    return type_name(entry) in ('Pretrained', 'PretrainedInit')


def initialize(
    module: nn.Module, type: str, layer: Any = (), bias: float = 0.0, **options: Any
) -> None:
    """Fill weights and biases of a module's layers.

    Args:
        module: The module.
        type: One of ``KINDS``.
        layer: Names of the layers' classes, or of a base of them; one may be a string.
        bias: The value of biases.
        **options: Of the kind.
    """
    layers = {layer} if isinstance(layer, str) else set(layer)

    def fill(part: nn.Module) -> None:
        kind = part.__class__
        if layers.isdisjoint(base.__name__ for base in (kind, *kind.__bases__)):
            return
        if getattr(part, 'weight', None) is not None:
            KINDS[type](part.weight, **options)
        if getattr(part, 'bias', None) is not None:
            nn.init.constant_(part.bias, bias)

    module.apply(fill)


class BaseModule(nn.Module):
    """A module that gives its parameters initial values when it is asked to.

    Args:
        init_cfg (dict | list[dict], optional): MMEngine's kinds of initialization, with
            the names of layers. Without MMEngine: 'Constant', 'TruncNormal' and
            'Xavier', and 'Pretrained' in a backbone. Default: PyTorch's values.

    Attributes:
        is_init (bool): Whether :meth:`init_weights` has run, which is once.
    """

    def __init__(self, init_cfg: InitConfig = None) -> None:
        super().__init__()
        self._is_init = False
        self.init_cfg: Any = copy.deepcopy(init_cfg)

    @property
    def is_init(self) -> bool:
        return self._is_init

    @is_init.setter
    def is_init(self, value: bool) -> None:
        self._is_init = value

    def init_weights(self) -> None:
        """Give parameters the initial values of ``init_cfg``, then those of the
        modules inside theirs.

        Raises:
            ValueError: If ``init_cfg`` needs MMEngine, which is not installed.
        """
        mmengine = sys.modules.get('mmengine.model') or self._import_mmengine()
        if mmengine:
            mmengine.BaseModule.init_weights(self)
            return
        if self._is_init:
            return
        for entry in entries_of(self.init_cfg):
            initialize(self, **entry)
        for child in self.children():
            if hasattr(child, 'init_weights') and not getattr(child, 'is_init', False):
                child.init_weights()
        self._is_init = True

    def _import_mmengine(self) -> Any:
        """MMEngine's models, if an entry of ``init_cfg`` is for them alone; else
        None."""
        for entry in entries_of(self.init_cfg):
            if entry['type'] in KINDS and not OF_MMENGINE & entry.keys():
                continue
            try:
                return import_module('mmengine.model')
            except ImportError as error:
                raise ValueError(
                    f'init_cfg={entry} needs MMEngine ({error}); without it, the types '
                    f"are {sorted(KINDS)}, and 'Pretrained' in a backbone: pip install "
                    "'mmlinattn[mm]'"
                ) from error
        return None

    def _dump_init_info(self) -> None:
        """Log notes, which MMEngine asks of the outermost module."""
        sys.modules['mmengine.model'].BaseModule._dump_init_info(self)

    def __repr__(self) -> str:
        text = super().__repr__()
        return f'{text}\ninit_cfg={self.init_cfg}' if self.init_cfg else text


class ModuleList(BaseModule, nn.ModuleList):
    """A list of modules, which are initialized with the one that holds it."""

    def __init__(self, modules: Iterable[nn.Module] = ()) -> None:
        super().__init__()
        self.extend(modules)
