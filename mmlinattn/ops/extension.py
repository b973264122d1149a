"""Attributes of ``mmcv._ext``, where that is ours."""

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from . import NAMES, missing


def __dir__() -> list[str]:
    return [*NAMES]


def __getattr__(name: str) -> Callable:
    # mmcv.ops can't be imported unless all names are there, and calls few of them;
    # everybody else is told what there is
    asked_by = sys._getframe(1).f_globals.get('__name__', '')
    if name in NAMES or (asked_by.startswith('mmcv.') and not name.startswith('__')):
        return _operator(name)
    raise AttributeError(missing(name))


@cache
def _operator(name: str) -> Callable:
    def operator(*tensors: Any, **options: Any) -> Any:
        from . import find  # of now: the benchmarks count calls by another one

        return find(name)(*tensors, **options)

    operator.__name__ = operator.__qualname__ = name
    return operator
