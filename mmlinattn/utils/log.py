"""The log of a run, and its silence."""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

# what quiet() changes belongs to all threads
_LOCK = RLock()


def current_logger() -> logging.Logger:
    """MMEngine's current logger where MMEngine is loaded, otherwise Python's
    'mmlinattn'."""
    mmengine = sys.modules.get('mmengine.logging')
    if mmengine is None:
        return logging.getLogger('mmlinattn')
    return mmengine.MMLogger.get_current_instance()


def log(text: str, level: int = logging.INFO) -> None:
    """Write a line to the log."""
    current_logger().log(level, text)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the logs of MMEngine and of this package, and all warnings."""
    with _LOCK, warnings.catch_warnings():
        logger = current_logger()
        level = logger.level
        logger.setLevel('ERROR')
        warnings.simplefilter('ignore')
        try:
            yield
        finally:
            logger.setLevel(level)
