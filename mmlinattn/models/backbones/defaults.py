"""Named models whose arguments are those of their skeleton, with other defaults."""

from functools import wraps
from inspect import signature
from typing import Any, Callable, TypeVar, cast

Constructor = TypeVar('Constructor', bound=Callable[..., None])


def with_defaults(init: Constructor, **defaults: Any) -> Constructor:
    """Return a constructor with the arguments of ``init`` and other defaults, which
    ``help`` shows. Written out, two dozen arguments would hide the few that a model
    changes."""
    parameters = signature(init).parameters

    @wraps(init)
    def constructor(*args: Any, **kwargs: Any) -> None:
        by_position = list(parameters)[: len(args)]
        unset = {name: defaults[name] for name in defaults if name not in by_position}
        init(*args, **{**unset, **kwargs})

    constructor.__signature__ = signature(init).replace(  # type: ignore[attr-defined]
        parameters=[
            parameter.replace(default=defaults.get(name, parameter.default))
            for name, parameter in parameters.items()
        ]
    )
    return cast(Constructor, constructor)
