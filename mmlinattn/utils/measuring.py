"""Time and peak memory of a step.

Memory on a CPU is the growth of the resident set: freed memory goes back to the system,
Linux is asked to forget its high-water mark (a 5 written to /proc/self/clear_refs), and
VmHWM after the step less VmRSS before it is the result. On a GPU it is torch's own
account.
"""

import gc
import multiprocessing
import re
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Optional, TypeVar

import torch

from .heap import release_memory

Result = TypeVar('Result')
STATUS, RESET = Path('/proc/self/status'), Path('/proc/self/clear_refs')


def seconds_of(step: Callable[[], object], device: str) -> float:
    """Return how long a step takes on a device, whose queue is empty before and
    after."""
    wait_for(device)
    began = time.perf_counter()
    step()
    wait_for(device)
    return time.perf_counter() - began


def wait_for(device: str) -> None:
    """Wait until a GPU has done its work; a CPU has done it."""
    if torch.device(device).type == 'cuda':
        torch.cuda.synchronize()


def measure_apart(measure: Callable[[], Result], device: str) -> Result:
    """Return what a function measures, on a CPU in a process of its own with as many
    threads, whose memory nothing else has used."""
    if torch.device(device).type == 'cuda':
        return measure()
    spawn = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(1, spawn) as pool:
        return pool.submit(_measure, measure, torch.get_num_threads()).result()


def _measure(measure: Callable[[], Result], threads: int) -> Result:
    torch.set_num_threads(threads)
    return measure()


def peak_bytes(step: Callable[[], object], device: str) -> Optional[int]:
    """Return bytes that a step takes above what is there before it; None where they
    can't be measured, as on a CPU without Linux."""
    gc.collect()
    if torch.device(device).type == 'cuda':
        wait_for(device)
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
