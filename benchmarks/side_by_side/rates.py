"""Rates of the machine, and floors of the time that follow from them.

Legend: h heads, N tokens, m landmarks, d head dim of queries, e of values.
"""

import platform
import subprocess
import time
from typing import NamedTuple

import torch

from .timing import synchronize

# Tokens at a time in a product's floor: what fits a cache, and what fills a GPU.
BLOCKS = (128, 256, 512, 1024, 4096, 16384)


class Rates(NamedTuple):
    """Rates of a machine in one dtype, each the best of several runs.

    Attributes:
        gemm (float): FLOP/s of a large matrix product.
        copy (float): Bytes/s of a large copy, those read and those written.
        exp (float): Elements/s of exp; on a CPU from cache to cache, on a GPU
            from memory to memory.
        device (torch.device): Where.
        dtype (torch.dtype): In what.
    """

    gemm: float
    copy: float
    exp: float
    device: torch.device
    dtype: torch.dtype

    def __str__(self):
        return (
            f'GEMM {self.gemm / 1e9:.4g} GFLOP/s, copy '
            f'{self.copy / 1e9:.4g} GB/s, exp {self.exp / 1e9:.3g} G/s'
        )


def measure_rates(device, dtype, small=False):
    """The machine's own rates.

    Args:
        device (torch.device): Where.
        dtype (torch.dtype): In what.
        small (bool): Small sizes, to see that it works.

    Returns:
        Rates: The rates.
    """
    gpu = device.type == 'cuda'
    side = 256 if small else 8192 if gpu else 2048
    large = torch.rand(
        2**20 if small else 2**28 if gpu else 2**26, dtype=dtype, device=device
    )
    target = torch.empty_like(large)
    copied = 2 * large.numel() * large.element_size()
    copy = copied / best_seconds(lambda: target.copy_(large), device)
    x, out = (t if gpu else t[: 2**18] for t in (large, target))
    exp = x.numel() / best_seconds(lambda: torch.exp(x, out=out), device)
    return Rates(gemm_rate(side, side, side, device, dtype), copy, exp, device, dtype)


def gemm_rate(rows, inner, columns, device, dtype):
    """FLOP/s of a product (rows, inner) by (inner, columns)."""
    a = torch.randn(rows, inner, device=device).to(dtype)
    b = torch.randn(inner, columns, device=device).to(dtype)
    out = torch.empty(rows, columns, device=device, dtype=dtype)
    seconds = best_seconds(lambda: torch.mm(a, b, out=out), device)
    return 2 * rows * inner * columns / seconds


def best_seconds(function, device, repeats=7, shortest=2e-3):
    """Shortest time of a function, repeated until a clock can tell."""
    function()
    times = 1
    best = float('inf')
    while repeats:
        synchronize(device)
        start = time.perf_counter()
        for _ in range(times):
            function()
        synchronize(device)
        seconds = time.perf_counter() - start
        if seconds < shortest:
            times *= 4
            continue
        best = min(best, seconds / times)
        repeats -= 1
    return best


def product_floor(inputs, rates):
    """The least seconds that a product with a Gaussian kernel matrix can take.

    2 h N m (d + e) FLOP and h N m exponentials: the first product has the inner
    size d, the second one that of the tokens in a block (P V) or m (P^T Y);
    each is taken at the rate measured for its inner size, with as many tokens
    at a time as serve it best.

    Args:
        inputs (tuple[Tensor]): The matrix's rows (B, h, M, d), its columns
            (B, h, K, d), and what it is multiplied with, (B, h, K, e).
        rates (Rates): The machine's.

    Returns:
        float: Seconds.
    """
    rows, columns, v = inputs
    entries = rows.shape[:-1].numel() * columns.size(-2)
    d, e = rows.size(-1), v.size(-1)
    few = min(rows.size(-2), columns.size(-2))
    many = max(rows.size(-2), columns.size(-2))
    blocks = {min(block, many) for block in BLOCKS}
    where = rates.device, rates.dtype
    first = max(gemm_rate(few, d, block, *where) for block in blocks)
    if rows.size(-2) < columns.size(-2):
        second = max(gemm_rate(few, block, e, *where) for block in blocks)
    else:
        second = max(gemm_rate(block, few, e, *where) for block in blocks)
    return entries * (2 * d / first + 2 * e / second + 1 / rates.exp)


def machine(device):
    """One line that says what the figures were measured on."""
    threads = torch.get_num_threads()
    name = f'{processor()}, {threads} thread{"s" if threads > 1 else ""}'
    if device.type == 'cuda':
        name = (
            f'{torch.cuda.get_device_name(device)}, driver {driver()}, CUDA '
            f'{torch.version.cuda}, {name}'
        )
    return f'{name}, torch {torch.__version__}, Python {platform.python_version()}'


def processor():
    """Name of the processor, as far as the system tells."""
    try:
        with open('/proc/cpuinfo') as lines:
            names = [line for line in lines if line.startswith('model name')]
        return names[0].partition(':')[2].strip()
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def driver():
    """Version of the GPU's driver, as far as nvidia-smi tells."""
    command = ['nvidia-smi', '--query-gpu=driver_version', '--format=csv,noheader']
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        return found.stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return 'unknown'
