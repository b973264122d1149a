"""Types of signatures, and signatures that list the options behind ``**kwargs``."""

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, Signature, isfunction, signature
from typing import Any, Union

HW = tuple[int, int]  # height and width of a map
Indices = Union[int, Sequence[int]]


class OptionsShown:
    """Base of classes whose ``help`` lists the options that they pass to their bases.

    Written out in every constructor, names, types and defaults of the same dozen
    options would stand in two dozen places, and come to differ.

    A constructor with ``**kwargs: Unpack[SomeOptions]`` takes the keys of that
    dictionary. A class without a constructor has that of its base, with the defaults
    ``own_defaults``.
    """

    own_defaults: dict[str, Any] = {}
    __signature__: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if '__init__' not in vars(cls) and 'own_defaults' in vars(cls):
            cls.__init__ = with_defaults(cls.__init__, cls.own_defaults)  # type: ignore
        inits = [vars(base).get('__init__') for base in cls.__mro__]
        known: dict[str, Any] = {}
        for init in reversed(inits):
            known.update(signature(init).parameters if isfunction(init) else {})
        own = dict(signature(cls.__init__).parameters)
        packed = cls.__init__.__annotations__.get('kwargs')
        for options in getattr(packed, '__args__', ()):
            del own['kwargs']
            for name in options.__annotations__:
                default = cls.own_defaults.get(name, known[name].default)
                own[name] = known[name].replace(
                    kind=Parameter.KEYWORD_ONLY, default=default
                )
        cls.__signature__ = Signature(list(own.values())[1:])


def with_defaults(init: Callable[..., None], defaults: dict[str, Any]) -> Callable:
    """A constructor with other defaults of its arguments."""
    own = signature(init)

    @wraps(init)
    def constructor(*args: Any, **kwargs: Any) -> None:
        arguments = own.bind_partial(*args, **kwargs).arguments
        options = arguments.pop('kwargs', {})
        init(**{**defaults, **options, **arguments})

    parameters = [
        parameter.replace(default=defaults.get(name, parameter.default))
        for name, parameter in own.parameters.items()
    ]
    constructor.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return constructor
