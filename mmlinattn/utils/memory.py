"""Peak memory of a step.

On a CPU it is the growth of the resident set: freed memory goes back to the system,
Linux is asked to forget its high-water mark (a 5 written to /proc/self/clear_refs), and
VmHWM after the step less VmRSS before it is the result. On a GPU it is torch's own
account.
"""

import ctypes
import gc
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Optional

import torch

STATUS, RESET = Path('/proc/self/status'), Path('/proc/self/clear_refs')


def peak_bytes(step: Callable[[], object], device: str) -> Optional[int]:
    """Return bytes that a step takes above what is there before it; None where they
    can't be measured, as on a CPU without Linux."""
    gc.collect()
    if torch.device(device).type == 'cuda':
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step()
        return torch.cuda.max_memory_allocated() - before
    release_memory()  # without glibc, what it keeps is resident before the step too
    try:
        RESET.write_text('5')
    except OSError:
        step()
        return None
    before = resident('VmRSS')
    step()
    return max(resident('VmHWM') - before, 0)


def release_memory() -> None:
    """Return freed memory to the system, where the C library is glibc."""
    library = ctypes.CDLL(None) if os.name == 'posix' else None
    trim = getattr(library, 'malloc_trim', None)
    if trim is not None:
        trim(0)


def resident(name: str) -> int:
    """Return a figure of /proc/self/status in bytes.

    Raises:
        OSError: If the system is not Linux.
        LookupError: If there is no such figure.
    """
    match = re.search(rf'{name}:\s+(\d+) kB', STATUS.read_text())
    if match is None:
        raise LookupError(f'{STATUS} has no {name}')
    return 1024 * int(match[1])
