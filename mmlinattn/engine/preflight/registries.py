"""Looks up the types of a config."""

from typing import Any

from mmengine.registry import Registry


def find(registry: Registry, kind: Any) -> Any:
    """Return the class of a type in a config, in the scope of the run; None if there is
    none."""
    if not isinstance(kind, str):
        return kind
    with registry.switch_scope_and_registry(None) as switched:
        return switched.get(kind)
