"""Exports models to files that run without this package, for images of any size."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .formats import FORMATS, export, parity
    from .openmmlab.whole import WholeModel
    from .outputs import ExportedModel
    from .predictor import Predictor

__all__ = ['FORMATS', 'ExportedModel', 'Predictor', 'WholeModel', 'export', 'parity']
_ELSEWHERE = dict(
    ExportedModel='outputs', Predictor='predictor', WholeModel='openmmlab.whole'
)


def __getattr__(name: str) -> Any:
    """Import a module when it is used: running a file needs no torch."""
    if name not in __all__:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    module = import_module(f'.{_ELSEWHERE.get(name, "formats")}', __name__)
    return getattr(module, name)
