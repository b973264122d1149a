"""Exports models to files that run without this package, for images of any size."""

from importlib import import_module

_ROOMS = {
    'FORMATS': 'formats',
    'export': 'formats',
    'parity': 'formats',
    'quantize': 'formats',
    'ExportedModel': 'outputs',
    'WholeModel': 'whole',
    'Predictor': 'predictor',
}
__all__ = ['FORMATS', 'ExportedModel', 'Predictor', 'WholeModel']
__all__ += ['export', 'parity', 'quantize']


def __getattr__(name):
    """What runs files imports no torch, and what makes them is imported when used."""
    if name not in _ROOMS:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module(f'.{_ROOMS[name]}', __name__), name)
