"""What a machine is, and how fast its matrix products are."""

import platform
import subprocess
import time

import torch

from .timing import synchronize


def matmul_rate(device, dtype, small=False):
    """FLOP/s of a large matrix product, the best of several runs.

    Args:
        device (torch.device): Where.
        dtype (torch.dtype): In what.
        small (bool): A small product, to see that it works.
    """
    side = 256 if small else 8192 if device.type == 'cuda' else 2048
    a, b = torch.randn(2, side, side, device=device).to(dtype)
    out = torch.empty_like(a)
    return 2 * side**3 / best_seconds(lambda: torch.mm(a, b, out=out), device)


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
