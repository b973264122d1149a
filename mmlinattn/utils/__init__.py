"""Reads and checks configs, and writes files whole."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import (
        check_file,
        core_of_config,
        library_of,
        load_config,
        register_config_scopes,
        wrapped_key,
    )

__all__ = [
    'check_file',
    'core_of_config',
    'library_of',
    'load_config',
    'register_config_scopes',
    'wrapped_key',
]


def __getattr__(name: str) -> Any:
    """Import a function when it is used: configs need MMEngine, files do not."""
    if name not in __all__:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module('.config', __name__), name)
