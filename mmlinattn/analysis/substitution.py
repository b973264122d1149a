"""Another function in the place of one of ours, for as long as a block runs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable


@contextmanager
def substituted(
    function: Callable[..., Any], substitute: Callable[..., Any]
) -> Iterator[None]:
    """Context in which the package calls another function.

    The function is replaced in all modules of the package that hold it, by whatever
    name, so that it does not matter how a caller imported it. What holds it
    otherwise, in a closure or a container, keeps the original. The replacement is
    seen by all threads.

    Args:
        function (callable): A function of the package.
        substitute (callable): What is called instead.

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
