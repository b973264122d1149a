"""Old names, for one version."""

import importlib
import warnings
from functools import wraps
from typing import Any, Callable, TypeVar, cast

AnyFunction = TypeVar('AnyFunction', bound=Callable[..., Any])


def moved_module(old, new, until):
    """``__getattr__`` of a module whose contents are elsewhere now.

    Args:
        old (str): Name of the module that it was.
        new (str): Name of the module that it is.
        until (str): Version that the old name goes with.

    Returns:
        callable: Finds a name in the new module, with a DeprecationWarning.
    """

    def find(name):
        if name.startswith('__'):
            raise AttributeError(name)
        value = getattr(importlib.import_module(new), name)
        warnings.warn(
            f'{old}.{name} moved to {new}.{name}; the old name goes with version '
            f'{until}',
            DeprecationWarning,
            stacklevel=2,
        )
        return value

    return find


def renamed_argument(
    old: str, new: str, until: str
) -> Callable[[AnyFunction], AnyFunction]:
    """Decorator of a function that takes an argument by its old name too.

    Args:
        old (str): Name of the argument that it was.
        new (str): Name of the argument that it is.
        until (str): Version that the old name goes with.

    Returns:
        callable: The decorator. The decorated function warns with a
        DeprecationWarning where the old name is used, and raises a TypeError where
        both names are.
    """

    def decorate(function: AnyFunction) -> AnyFunction:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if old in kwargs:
                if new in kwargs:
                    raise TypeError(
                        f'{function.__name__}() got {new} and its old name {old}'
                    )
                warnings.warn(
                    f'{old} of {function.__name__}() is {new} now; the old name goes '
                    f'with version {until}',
                    DeprecationWarning,
                    stacklevel=2,
                )
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return cast(AnyFunction, call)

    return decorate
