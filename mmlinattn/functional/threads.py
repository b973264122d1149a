"""A cap on the threads of work that consists of many small steps on a CPU.

Each step of several threads ends when the last of them is done. Where another process
runs on the same cores, one of them waits for its turn of some milliseconds, at each
step anew, while the others spin.
"""

import ctypes
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Optional

import torch
from torch import Tensor

from .tracing import is_traced


def one_thread(a: Tensor, below: int) -> AbstractContextManager:
    """Context in which the calling thread computes small matrices alone, on a CPU.

    ``torch.set_num_threads`` would concern the whole process, and starts and ends
    threads. OpenMP and MKL have a number for each thread, which is free to change. A
    torch without them goes on as it is, and so does a compiled graph.

    Args:
        a (Tensor): Matrices of the device and size, (..., m, m).
        below (int): From this m on, threads share the work as usual.
    """
    if is_traced() or not a.is_cpu or a.size(-1) >= below:
        return nullcontext()
    library = _library()
    return nullcontext() if library is None else _OneThread(library)


class _OneThread:
    def __init__(self, library: Any) -> None:
        self.library = library

    def __enter__(self) -> None:
        # torch's own question: at the first one, it sets the number of this thread
        self.openmp = torch.get_num_threads()
        self.library.omp_set_num_threads(1)
        # 0 stands for the number of the process
        self.mkl = _set_mkl(self.library, 1)

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.library.omp_set_num_threads(self.openmp)
        _set_mkl(self.library, self.mkl)


def _set_mkl(library: Any, number: int) -> int:
    """Sets MKL's number for this thread, and returns the one before, 0 for none."""
    if not hasattr(library, 'MKL_Set_Num_Threads_Local'):
        return 0
    return library.MKL_Set_Num_Threads_Local(number)


@cache
def _library() -> Any:
    """torch's library for CPUs, which finds OpenMP's functions too, or None."""
    path = Path(torch.__file__).with_name('lib') / 'libtorch_cpu.so'
    try:
        library = ctypes.CDLL(str(path))
        return library if hasattr(library, 'omp_set_num_threads') else None
    except OSError:
        return None
