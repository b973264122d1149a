"""Errors of the libraries, told as errors of a part of a config."""

import inspect
import re
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mmengine import registry
from mmengine.logging import MMLogger

from mmlinattn.utils.config_keys import did_you_mean

UNKNOWN_ARGUMENT = r"got an unexpected keyword argument '(\w+)'"
NO_SAMPLES = 'there are no samples: annotations, classes or filter_cfg leave none'
# What an error says that speaks of something else than what is wrong, and what is.
MEANINGS = {'need at least one array to concatenate': NO_SAMPLES}
REGISTRIES = [x for x in vars(registry).values() if isinstance(x, registry.Registry)]
LIBRARIES = {
    *('mmcv', 'mmdet', 'mmengine', 'mmlinattn', 'mmpretrain', 'mmseg'),
    *('torch', 'torchvision'),
}
# What the libraries raise on a config that can't be built, or can't run at a size.
LIBRARY_ERRORS = (
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


@contextmanager
def quiet() -> Iterator[None]:
    """Silences the libraries' logs and warnings."""
    logger = MMLogger.get_current_instance()
    level = logger.level
    logger.setLevel('ERROR')
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    finally:
        logger.setLevel(level)


@contextmanager
def part(name: str) -> Iterator[None]:
    """Turns any error into a ValueError that names a part."""
    try:
        yield
    except Exception as error:
        raise ValueError(f'{name}: {reason(error)}') from error


def reason(error: Exception, cfg: Any = None) -> str:
    """An error's text, and the name that an unknown argument was meant to be.

    Args:
        error (Exception): What the libraries raised.
        cfg (dict, optional): The config that they raised it for.

    Returns:
        str: The text.
    """
    text = str(error)
    if not text:  # an assertion, seldom more
        place = traceback.extract_tb(error.__traceback__)[-1:]
        text = ''.join([type(error).__name__, *(f' in {x.line!r}' for x in place)])
    if isinstance(error, KeyError) and error.args:
        text = str(error.args[0])
        # that of a plain KeyError is a name without a word
        text = text if ' ' in text else f'it has no {text!r}'
    for words, meaning in MEANINGS.items():
        text = meaning if words in text else text
    unknown = re.search(UNKNOWN_ARGUMENT, text)
    if unknown:
        takers = [cls for node, cls in classes_in(cfg) if unknown[1] in node]
        bases = [base for cls in takers for base in getattr(cls, '__mro__', ())]
        names = [name for base in bases for name in arguments_of(base)]
        text += did_you_mean(unknown[1], names)
    return text


def arguments_of(cls: type) -> list[str]:
    """Names that a class's own constructor has for its arguments."""
    if '__init__' not in vars(cls) or cls is object:
        return []
    return [*inspect.signature(cls.__init__).parameters][1:]


def classes_in(cfg: Any) -> Iterator[tuple[dict, Any]]:
    """(node, class or function) of all that a config names to be built."""
    if isinstance(cfg, (list, tuple)):
        for child in cfg:
            yield from classes_in(child)
    elif isinstance(cfg, dict):
        for kind in (cfg.get('type'), cfg.get('constructor')):
            if isinstance(kind, str):
                kind = find_class(kind, cfg.get('_scope_'))
            if kind is not None:
                yield cfg, kind
        yield from classes_in(list(cfg.values()))


def find_class(name: str, scope: Any = None) -> Any:
    """What a registry of MMEngine or of its children has under a name, or None."""
    for root in REGISTRIES:
        with root.switch_scope_and_registry(scope) as child:
            try:
                found = child.get(name)
            except RuntimeError:  # in some versions, where there is none
                found = None
        # MMEngine takes the name of a module for that of a class, too
        if found is not None and not inspect.ismodule(found):
            return found
    return None


def has_own_code(cfg: Any) -> bool:
    """Whether a config names classes or functions of none of the libraries."""
    modules = (getattr(thing, '__module__', '') for _, thing in classes_in(cfg))
    return any(name.partition('.')[0] not in LIBRARIES for name in modules)
