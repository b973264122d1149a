"""Builds parts of models from configs.

A config is a dict with a ``type``, the name of a class or the class itself, and the
class's options. Names are those of our classes and, for norms and activations, of
PyTorch's. Where MMEngine is loaded, what is registered there has a name, too.
"""

import sys
from collections.abc import Mapping
from typing import Any, Optional, TypeVar

Kind = TypeVar('Kind', bound=type)

SCOPE = 'mmlinattn'
# our classes by name; `mmlinattn.registry` shares the table with MMEngine
CLASSES: dict[str, type] = {}
# names in configs of OpenMMLab for layers of torch.nn, which has its own names, too
SHORT_NAMES = {
    'BN': 'BatchNorm2d',
    'BN1d': 'BatchNorm1d',
    'BN2d': 'BatchNorm2d',
    'BN3d': 'BatchNorm3d',
    'GN': 'GroupNorm',
    'HSigmoid': 'Hardsigmoid',
    'HSwish': 'Hardswish',
    'IN': 'InstanceNorm2d',
    'IN1d': 'InstanceNorm1d',
    'IN2d': 'InstanceNorm2d',
    'IN3d': 'InstanceNorm3d',
    'LN': 'LayerNorm',
    'Swish': 'SiLU',
    'SyncBN': 'SyncBatchNorm',
}


def register(kind: Kind) -> Kind:
    """Make a class known by its name, as a decorator of the class.

    Raises:
        KeyError: If another module has registered a class of this name.
    """
    known = CLASSES.setdefault(kind.__name__, kind)
    if known.__module__ != kind.__module__:
        raise KeyError(
            f'{kind.__name__} is already registered by {known.__module__}: choose '
            'another name'
        )
    CLASSES[kind.__name__] = kind
    return kind


def type_name(cfg: Any) -> str:
    """Return the name of the class in a config, whose ``type`` is a name, with or
    without a scope or a module, or the class itself; '' without a type."""
    kind = cfg.get('type') if isinstance(cfg, Mapping) else None
    name = '' if kind is None else getattr(kind, '__name__', str(kind))
    return name.rpartition('.')[2]


def find(name: str) -> Optional[Any]:
    """Return the class of a name, with or without our scope: one of ours, or one that
    MMEngine knows without a default scope, where MMEngine is loaded. None if there is
    none."""
    own = name[len(SCOPE) + 1 :] if name.startswith(f'{SCOPE}.') else name
    if own in CLASSES:
        return CLASSES[own]
    mmengine = sys.modules.get('mmengine.registry')
    return mmengine and mmengine.MODELS.get(name)


def find_layer(name: str) -> Optional[Any]:
    """Return the class of a norm or an activation: what :func:`find` finds, one in the
    default scope of a run, or PyTorch's."""
    kind = find(name)
    mmengine = sys.modules.get('mmengine.registry')
    if kind is None and mmengine:
        with mmengine.MODELS.switch_scope_and_registry(None) as registry:
            kind = registry.get(name)
    if kind is None:
        from torch import nn  # configs are read without the seconds that it takes

        layer = getattr(nn, SHORT_NAMES.get(name, name), None)
        kind = layer if isinstance(layer, type) else None
    return kind


def resolve(cfg: Mapping[str, Any], finder: Any = find) -> tuple[Any, dict[str, Any]]:
    """Return the class that a config names, and its options.

    Raises:
        KeyError: If there is no ``type``, or no class of this name.
        TypeError: If ``type`` is neither a name nor a class.
    """
    options = {key: value for key, value in cfg.items() if key != '_scope_'}
    if 'type' not in options:
        raise KeyError(f"a config needs the key 'type', got {dict(cfg)}")
    kind = name = options.pop('type')
    if isinstance(name, str):
        kind = finder(name)
    if kind is None:
        raise KeyError(f'{name} is not in the {SCOPE}::model registry')
    if not callable(kind):
        raise TypeError(f'type must be a name or a class, got {kind!r}')
    return kind, options


def build_model(cfg: Mapping[str, Any], **kwargs: Any) -> Any:
    """Build a part of one of our models, whatever the default scope of a run is. The
    entries of the config override ``kwargs``, which the enclosing model knows.

    Raises:
        KeyError: If there is no class of this name.
    """
    kind, options = resolve(cfg)
    return kind(**{**kwargs, **options})


def build_activation(cfg: Mapping[str, Any]) -> Any:
    """Build an activation layer.

    Raises:
        KeyError: If there is no class of this name.
    """
    kind, options = resolve(cfg, find_layer)
    return kind(**options)


def build_norm(cfg: Mapping[str, Any], channels: int) -> Any:
    """Build a norm layer for maps (B, C, H, W). ``requires_grad=False`` in its config
    freezes it.

    Raises:
        KeyError: If there is no class of this name.
    """
    kind, options = resolve(cfg, find_layer)
    is_trained = options.pop('requires_grad', True)
    options.setdefault('eps', 1e-5)
    if getattr(kind, '__name__', '') == 'GroupNorm':
        # its first argument is the number of groups
        norm = kind(num_channels=channels, **options)
    else:
        norm = kind(channels, **options)
    return norm.requires_grad_(is_trained)
