"""Looks up the types of a config."""

from contextlib import AbstractContextManager
from typing import Any

from mmengine.config import Config
from mmengine.registry import DefaultScope, Registry


def find(registry: Registry, kind: Any) -> Any:
    """Return the class of a type in a config, in the scope of the run; None if there is
    none."""
    if not isinstance(kind, str):
        return kind
    with registry.switch_scope_and_registry(None) as switched:
        return switched.get(kind)


def scope_of(cfg: Config) -> AbstractContextManager:
    """Return a context in which types are looked up as the config's runner does."""
    name = cfg.get('default_scope', 'mmengine')
    return DefaultScope.overwrite_default_scope(name)
