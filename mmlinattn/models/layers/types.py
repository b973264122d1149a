"""Types of signatures, and signatures that list the options behind ``**kwargs``."""

from collections.abc import Sequence
from inspect import Parameter, Signature, isfunction, signature
from typing import Any, Union

HW = tuple[int, int]  # height and width of a map
Indices = Union[int, Sequence[int]]


class OptionsShown:
    """Base of classes whose ``help`` lists the options that they pass to their bases.

    A constructor with ``**kwargs: Unpack[SomeOptions]`` takes the keys of that
    dictionary. Their defaults are those of ``own_defaults`` and of the bases.
    """

    own_defaults: dict[str, Any] = {}
    __signature__: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = dict(signature(cls.__init__).parameters)
        packed = getattr(cls.__init__, '__annotations__', {}).get('kwargs')
        known: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            init = vars(base).get('__init__')
            known.update(signature(init).parameters if isfunction(init) else {})
        for options in getattr(packed, '__args__', ()):
            del own['kwargs']
            for name in options.__annotations__:
                default = cls.own_defaults.get(name, known[name].default)
                own[name] = known[name].replace(
                    kind=Parameter.KEYWORD_ONLY, default=default
                )
        cls.__signature__ = Signature(list(own.values())[1:])
