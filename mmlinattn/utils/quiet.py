"""Silence of the libraries."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from mmengine.logging import MMLogger

# what it changes belongs to all threads
_LOCK = RLock()


@contextmanager
def quiet() -> Iterator[None]:
    """Silences the libraries' logs and warnings."""
    with _LOCK, warnings.catch_warnings():
        logger = MMLogger.get_current_instance()
        level = logger.level
        logger.setLevel('ERROR')
        warnings.simplefilter('ignore')
        try:
            yield
        finally:
            logger.setLevel(level)
