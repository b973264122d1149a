"""Explains why a part of a config can't be built: its key, and the likely name."""

import inspect
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Optional

from mmengine import registry
from torch.utils.data import DataLoader

# Python's words for an option that nothing takes, and MMEngine's for an unknown type
UNEXPECTED = re.compile(
    r"(?:(\w+)\.)?(\w+)\(\) got an unexpected keyword argument '(.*?)'"
)
UNKNOWN = re.compile(
    r'(?:Cannot find )?([\w.]+) (?:is not in the [\w-]*::(.+?)|in) registry'
)
# text that begins like a number
NUMBER = re.compile(r'[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d*)?[a-z%]{0,3}', re.I)
# what MMEngine reads of a data loader, besides PyTorch's options
OF_LOADERS = {
    *('batch_sampler', 'collate_fn', 'dataset', 'num_batch_per_epoch', 'sampler'),
    'worker_init_fn',
}
# what builders take out of a part before they call its class
OF_BUILDERS = {'_scope_', 'by_epoch', 'type'}
# options of other libraries' base configs that none of our backbones has
ADVICE = {
    'pretrained': 'name weights in init_cfg, and set model.pretrained=None where a '
    'base config of mmseg has it'
}


class OptionError(TypeError):
    """A class or a function has no option of a name."""

    def __init__(self, kind: Any, name: str) -> None:
        text = f"{kind.__name__}() got an unexpected keyword argument '{name}'"
        super().__init__(text)
        self.kind = kind


def explain(error: BaseException, key: str, node: Any) -> Optional[str]:
    """Say which option or type of a part of a config is misspelled, and the likely
    name.

    Args:
        error (BaseException): Raised where the part was built, in its scope.
        key (str): The part's dotted key.
        node (Any): The part.

    Returns:
        One line, or None if the error has another cause.
    """
    text = str(error)
    match = UNEXPECTED.search(text)
    if match and isinstance(error, TypeError):
        taker = match[1] or match[2].replace('__init__', '') or None
        return unexpected(match[3], key, node, taker, callee(error, taker))
    match = UNKNOWN.search(text)
    if match and isinstance(error, KeyError):
        return unknown(match[1], match[2], key, node)
    if text == 'None is not a callable object':  # MMEngine found no such optimizer
        return unknown('None', None, key, node)
    kinds = (AssertionError, TypeError, ValueError)
    return no_number(text, key, node) if isinstance(error, kinds) else None


def is_in(error: BaseException, node: Any) -> bool:
    """Return whether Python refused an option that a part of a config has."""
    match = UNEXPECTED.search(str(error))
    if match is None or not isinstance(error, TypeError):
        return False
    return any(match[3] in part for _, part in parts(node))


def parts(node: Any, key: str = '') -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the dicts inside of a part of a config, itself included, with dotted
    keys."""
    children: Iterable[tuple[Any, Any]] = ()
    if isinstance(node, dict):
        yield key, node
        children = node.items()
    elif isinstance(node, (list, tuple)):
        children = enumerate(node)
    for name, child in children:
        yield from parts(child, f'{key}.{name}'.strip('.'))


def unexpected(
    name: str, key: str, node: Any, taker: Optional[str], known: list[Any]
) -> Optional[str]:
    """Return the line for an option that a class does not have. ``taker`` is the name
    of the class that refused it, None if Python does not say, and ``known`` has classes
    of this name, for parts without a type."""
    for place, part in parts(node, key):
        if name not in part:
            continue
        is_loader = place.endswith('_dataloader') and 'type' not in part
        kinds = [DataLoader] if is_loader else kinds_of(part.get('type'))
        kinds = [kind for kind in kinds if taker is None or has_base(kind, taker)]
        kinds += known if 'type' not in part else []
        for kind in kinds:
            names = parameters_of(kind)
            if names is not None and is_loader:
                names |= OF_LOADERS
            if names is not None and name not in names:
                others = {*names, *OF_BUILDERS}
                wrong = [option for option in part if option not in others]
                wrong.sort(key=lambda option: option != name)
                return describe(place, kind.__name__, part, wrong, names)
    return None


def describe(
    place: str, kind: str, part: dict[str, Any], wrong: list[str], names: set[str]
) -> str:
    """Return the line for options that a class does not have, of which the first one,
    the one that Python refused, decides the remedy."""
    shown = ', '.join(f'{place}.{name}={part[name]!r}' for name in wrong[:4])
    shown += ', ...' if wrong[4:] else ''
    text = f'{shown}: {kind} has no such option'
    choice = likely(wrong[0], names)
    if wrong[0] in ADVICE:
        return f'{text}: {ADVICE[wrong[0]]}'
    if choice:
        return f'{text}; did you mean {choice!r}?'
    return f'{text}: remove it; {place}._delete_=True drops what a base config sets'


def unknown(name: str, kind: Optional[str], key: str, node: Any) -> Optional[str]:
    """Return the line for a type that no registry of a kind has. MMCV says None for
    it."""
    for place, part in parts(node, key):
        own = part.get('type')
        if not isinstance(own, str):
            continue
        if name in (own, own.rpartition('.')[2]) or (
            name == 'None' and not kinds_of(own)
        ):
            text = f'{place}.type={own!r}: there is no such {kind or "type"}'
            choice = likely(own.rpartition('.')[2], registered(kind))
            return f'{text}; did you mean {choice!r}?' if choice else text
    return None


def no_number(text: str, key: str, node: Any) -> Optional[str]:
    """Return the line for text that begins like a number and is none, or None."""
    for place, part in parts(node, key):
        for name, value in part.items():
            if isinstance(value, str) and NUMBER.fullmatch(value):
                what = f'{place}.{name}={value!r} is text, not a number'
                return f'{what} ({" ".join(text.split())})'
    return None


def likely(name: str, names: Iterable[str], cutoff: float = 0.6) -> Optional[str]:
    """Return the name that was probably meant, or None; the cutoff is difflib's."""
    plain = {plain_form(other): other for other in sorted(names)}
    form = plain_form(name)
    if form in plain:
        return plain[form]
    longer = [other for other in plain if form and other.startswith(form)]
    close = get_close_matches(form, plain, 1, cutoff)
    choice = next(iter([*sorted(longer, key=len), *close]), None)
    return None if choice is None else plain[choice]


def plain_form(name: str) -> str:
    """Return a name without its case, blanks, underscores and hyphens."""
    return re.sub(r'[\s_-]', '', name).lower()


def kinds_of(name: Any) -> list[Any]:
    """Return the classes or functions that a type in a config may mean."""
    if not isinstance(name, str):
        return [] if name is None else [name]
    kinds = []
    for root in roots():
        for scope in (None, 'mmlinattn'):
            with root.switch_scope_and_registry(scope) as switched:
                kinds.append(switched.get(name))
    return [*dict.fromkeys(kind for kind in kinds if kind is not None)]


def has_base(kind: Any, name: str) -> bool:
    """Return whether a class, or one that it inherits from, or a function has a
    name."""
    return any(base.__name__ == name for base in getattr(kind, '__mro__', (kind,)))


def roots() -> list[Any]:
    """MMEngine's registries."""
    values = vars(registry).values()
    return [value for value in values if isinstance(value, registry.Registry)]


def registered(kind: Optional[str]) -> set[str]:
    """Return names of what is registered as of a kind, or of any, in all libraries that
    are loaded."""
    names: set[str] = set()
    for root in roots():
        family = [root]
        for one in family:  # it grows
            family += one.children.values()
        # libraries give their registries other names
        if kind is None or any(one.name == kind for one in family):
            names |= {name for one in family for name in one.module_dict}
    return names


def parameters_of(kind: Any) -> Optional[set[str]]:
    """Return names of the options that a class or a function takes; None for one that
    takes any."""
    names, is_open = signature_of(kind)
    return None if is_open else names


def signature_of(kind: Any) -> tuple[set[str], bool]:
    """Return names of the options of a class or a function, those of its bases as far
    as they are handed on included, and whether it takes others, too."""
    bases = getattr(kind, '__mro__', ())
    functions = [base.__init__ for base in bases if '__init__' in vars(base)]
    names: set[str] = set()
    for function in functions or [kind]:
        try:
            parameters = inspect.signature(function).parameters.values()
        except ValueError:  # it is not written in Python
            break
        kinds = {parameter.kind for parameter in parameters}
        names |= {
            parameter.name
            for parameter in parameters
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        }
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            return names - {'self'}, False
    return names - {'self'}, True


def is_open(kind: Any) -> bool:
    """Return whether a class or a function takes options of any name itself; what it
    does with them is its own affair."""
    try:
        parameters = inspect.signature(kind).parameters.values()
    except ValueError:  # it is not written in Python
        return True
    return any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters)


def callee(error: BaseException, name: Optional[str]) -> list[Any]:
    """Return the class of a name that Python gives for the refused call, as the calling
    module knows it, or those that are registered."""
    if isinstance(error, OptionError):
        return [error.kind]
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    known = trace.tb_frame.f_globals.get(name or '') if trace else None
    return [known] if isinstance(known, type) else kinds_of(name)
