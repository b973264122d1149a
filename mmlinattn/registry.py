"""Child registries of MMEngine's roots, scope ``mmlinattn``.

MMEngine imports ``<scope>.registry`` by itself, so ``type='mmlinattn.X'`` is
found from mmengine, mmdet, mmseg and mmpretrain without any import.
"""

from typing import Any

import mmlinattn

mmlinattn.check_versions()

from mmengine import registry as roots  # noqa: E402


def build_from_scope(cfg: Any, registry: roots.Registry, **kwargs: Any) -> Any:
    """Builds a config, or a list of them in a row, in scope ``mmlinattn``.

    The default scope is that of the task (mmdet, mmseg, ...), and MMEngine's
    ``_scope_`` changes it for all threads, where another may be building a model. So
    classes are looked up here, and the default scope stays.

    Raises:
        KeyError: If there is no such class.
    """
    cfgs = [with_class(x, registry) for x in (cfg if isinstance(cfg, list) else [cfg])]
    cfg = cfgs if isinstance(cfg, list) else cfgs[0]
    return roots.build_model_from_cfg(cfg, registry, **kwargs)


def with_class(cfg: Any, registry: roots.Registry) -> Any:
    """A config with the class of this registry, or of its parent, in place of its
    name; else a KeyError."""
    if not isinstance(cfg, dict) or '_scope_' in cfg:
        return cfg
    name = cfg.get('type')
    if not isinstance(name, str):
        return cfg
    found = registry.get(name)
    if found is None:
        raise KeyError(f'{name} is not in the mmlinattn::{registry.name} registry')
    cfg = cfg.copy()
    cfg['type'] = found
    return cfg


MODELS = roots.Registry(
    'model',
    build_func=build_from_scope,
    parent=roots.MODELS,
    scope='mmlinattn',
    locations=['mmlinattn.models'],
)
HOOKS = roots.Registry(
    'hook', parent=roots.HOOKS, scope='mmlinattn', locations=['mmlinattn.engine']
)
OPTIM_WRAPPER_CONSTRUCTORS = roots.Registry(
    'optimizer wrapper constructor',
    parent=roots.OPTIM_WRAPPER_CONSTRUCTORS,
    scope='mmlinattn',
    locations=['mmlinattn.engine'],
)


def build_model(cfg: dict, **kwargs: Any) -> Any:
    """Builds a part of one of our models, in scope ``mmlinattn``.

    The entries of the config override ``kwargs``, which the enclosing model knows.
    """
    return MODELS.build({**kwargs, **cfg})
