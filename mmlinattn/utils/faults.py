"""Tells faults of this package from wrong input."""

import linecache
import traceback
from pathlib import Path
from types import FrameType

_PACKAGE = Path(__file__).resolve().parents[1]
# it calls the classes that a config names, with the options of the config
_BUILDER = 'mmlinattn.parts'
# of what Python raises by itself where code is wrong
_KINDS = (
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    TypeError,
    ZeroDivisionError,
)


def is_own_fault(error: BaseException) -> bool:
    """Return True for an error that Python raised at a line of this package, rather
    than a check of it by ``raise``; the error has its traceback."""
    if not isinstance(error, _KINDS):
        return False
    frames = list(traceback.walk_tb(error.__traceback__))
    # what torch refuses was given to it by the line before
    while frames and frames[-1][0].f_globals.get('__name__', '').startswith('torch.'):
        frames.pop()
    if not frames:
        return False
    frame, line = frames[-1]
    if frame.f_globals.get('__name__') == _BUILDER:
        return False
    return _is_in(frame, _PACKAGE) and not _raises(frame, line)


def _is_in(frame: FrameType, folder: Path) -> bool:
    return folder in Path(frame.f_code.co_filename).resolve().parents


def _raises(frame: FrameType, line: int) -> bool:
    text = linecache.getline(frame.f_code.co_filename, line, frame.f_globals)
    return text.lstrip().startswith('raise')
