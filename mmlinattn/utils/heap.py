"""What becomes of freed memory, where the C library is glibc; others stay as they are.

By default, glibc returns large blocks to the system. Linux clears memory before it
gives it out, page by page, so the results of a model's operators cost that each time
anew: nearly half of PVTv2-B1's prediction for an image of 800 x 1344 pixels.
"""

import ctypes
import os
from typing import Any

# of malloc.h
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
# variables that keep freed memory from the start of a process on
KEEPING = dict(MALLOC_MMAP_MAX_='0', MALLOC_TRIM_THRESHOLD_='-1')
# by which a person decides it for a process
SETTINGS = (*KEEPING, 'GLIBC_TUNABLES', 'MALLOC_MMAP_THRESHOLD_', 'MALLOC_TOP_PAD_')


def keep_freed_memory() -> bool:
    """Keep freed memory for the next results, as the variables ``KEEPING`` do.

    Returns:
        bool: False if nothing changed: a person has set one of ``SETTINGS``, or the C
            library is not glibc.
    """
    library = _c_library()
    is_glibc = hasattr(library, 'gnu_get_libc_version')
    if not is_glibc or any(name in os.environ for name in SETTINGS):
        return False
    library.mallopt(_MMAP_MAX, 0)
    library.mallopt(_TRIM_THRESHOLD, -1)
    return True


def release_memory() -> None:
    """Return freed memory to the system once."""
    trim = getattr(_c_library(), 'malloc_trim', None)
    if trim is not None:
        trim(0)


def _c_library() -> Any:
    return ctypes.CDLL(None) if os.name == 'posix' else None
