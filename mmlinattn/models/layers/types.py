"""Types of signatures, and signatures that list the options behind ``**kwargs``."""

from collections.abc import Sequence
from functools import partialmethod
from inspect import Parameter, Signature, isfunction, signature
from typing import Any, Union

HW = tuple[int, int]  # height and width of a map
Indices = Union[int, Sequence[int]]


class OptionsShown:
    """Base of classes whose ``help`` lists the options that they pass to their bases.

    A constructor with ``**kwargs: Unpack[SomeOptions]`` takes the keys of that
    dictionary. A class without a constructor has that of its base, with the defaults
    ``own_defaults``.
    """

    own_defaults: dict[str, Any] = {}
    __signature__: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        inits = [vars(base).get('__init__') for base in cls.__mro__]
        written = [init for init in inits if isfunction(init)]
        if cls.own_defaults and '__init__' not in vars(cls):
            cls.__init__ = partialmethod(written[0], **cls.own_defaults)  # type: ignore
        own = dict(signature(cls.__init__).parameters)
        known: dict[str, Any] = {}
        for init in reversed(written):
            known.update(signature(init).parameters)
        packed = written[0].__annotations__.get('kwargs')
        for options in getattr(packed, '__args__', ()):
            del own['kwargs']
            for name in options.__annotations__:
                own[name] = known[name].replace(kind=Parameter.KEYWORD_ONLY)
        cls.__signature__ = Signature(list(own.values())[1:])
