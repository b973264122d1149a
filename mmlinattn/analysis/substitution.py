"""Replaces one of our functions while a block runs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable


@contextmanager
def substituted(
    function: Callable[..., Any], substitute: Callable[..., Any]
) -> Iterator[None]:
    """Context in which the package calls another function.

    The function is replaced in all modules of the package that hold it under any name,
    so it does not matter how a caller imported it. Closures and containers keep the
    original. All threads see the replacement.

    Args:
        function (callable): A function of the package.
        substitute (callable): The function that is called instead.

    Raises:
        ValueError: If no module of the package holds the function.
    """
    package = __name__.partition('.')[0]
    places = [
        (vars(module), name)
        for module_name, module in list(sys.modules.items())
        if module_name.partition('.')[0] == package
        for name, value in list(vars(module).items())
        if value is function
    ]
    if not places:
        raise ValueError(f'no module of {package} holds {function!r}')
    for namespace, name in places:
        namespace[name] = substitute
    try:
        yield
    finally:
        for namespace, name in places:
            namespace[name] = function
