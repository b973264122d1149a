"""Errors of the libraries, told as errors of a part of a config."""

import inspect
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from re import search
from traceback import walk_tb

from mmengine.logging import MMLogger

UNKNOWN_ARGUMENT = r"got an unexpected keyword argument '(\w+)'"
# what MMEngine says where a dataset has none
NO_SAMPLES = 'need at least one array to concatenate'
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
    """Turns any error into one that names the part of the config.

    Raises:
        ValueError: If there is an error.
    """
    try:
        yield
    except Exception as error:
        raise ValueError(f'{name}: {reason(error)}{likely_argument(error)}') from error


def reason(error: Exception) -> str:
    """An error's text; that of a plain KeyError is a name without a word."""
    if isinstance(error, KeyError) and error.args:
        text = str(error.args[0])
        return text if ' ' in text else f'it has no {text!r}'
    if NO_SAMPLES in str(error):
        return 'there are no samples: annotations, classes or filter_cfg leave none'
    return str(error) or type(error).__name__


def likely_argument(error: Exception) -> str:
    """A hint for an error that says that a class does not know an argument."""
    found = search(UNKNOWN_ARGUMENT, str(error))
    # the class that a registry was about to build, as the frames of the error have it
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    built = [x for x in (frame.f_locals.get('obj_cls') for frame in frames) if x]
    if not found or not built or not inspect.isclass(built[-1]):
        return ''
    names = [name for base in built[-1].__mro__ for name in arguments_of(base)]
    likely = get_close_matches(found[1], names, 1)
    return f'; did you mean {likely[0]!r}?' if likely else ''


def arguments_of(cls: type) -> Sequence[str]:
    """Names that a class's own constructor has for its arguments."""
    if '__init__' not in vars(cls) or cls is object:
        return ()
    return [*inspect.signature(cls.__init__).parameters][1:]
