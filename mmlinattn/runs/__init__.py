"""Training and testing: what is checked before, what runs, and what is said of it.

Importing it raises an ImportError for an mmcv that can't work. ``preparation`` has
what both share, ``training`` and ``testing`` run, ``schedules`` and ``resume_report``
compare a schedule with a run, ``screen`` shows a run, ``work_dir`` keeps its folder.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mmlinattn import ops

if TYPE_CHECKING:
    from .testing import test
    from .training import Trained, train

__all__ = ['Trained', 'test', 'train']
_PLACES = dict(test='testing', train='training', Trained='training')

ops.check()


def __getattr__(name: str) -> Any:
    """Import a function when it is used: it needs MMEngine."""
    if name not in __all__:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_module(f'.{_PLACES[name]}', __name__), name)
