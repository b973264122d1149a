"""Families of official checkpoints, found in the files of this folder."""

from importlib import import_module
from pkgutil import iter_modules

from .layout import HEAD, Family, Layout, find_scales

__all__ = ['FAMILIES', 'HEAD', 'Family', 'Layout', 'find_scales']

FAMILIES: dict[str, Family] = {
    module.FAMILY.name: module.FAMILY
    for module in (
        import_module(f'{__name__}.{module.name}') for module in iter_modules(__path__)
    )
    if hasattr(module, 'FAMILY')
}
