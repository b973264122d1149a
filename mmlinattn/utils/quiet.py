"""Silence of the libraries."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.logging import MMLogger


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
