"""Description of a machine, and the speed of its matrix products."""

import platform
import subprocess

import torch
from torch.utils.benchmark import Timer


def matmul_rate(device, dtype, small=False):
    """FLOP/s of a large matrix product, the best of several runs.

    Args:
        device (torch.device): Where.
        dtype (torch.dtype): In what.
        small (bool): A small product, to see that it works.
    """
    side = 256 if small else 8192 if device.type == 'cuda' else 2048
    a, b = torch.randn(2, side, side, device=device).to(dtype)
    timer = Timer(
        'torch.mm(a, b, out=out)',
        globals=dict(torch=torch, a=a, b=b, out=torch.empty_like(a)),
        num_threads=torch.get_num_threads(),
    )
    timer.timeit(1)
    found = timer.blocked_autorange(min_run_time=0.02 if small else 2)
    return 2 * side**3 / min(found.times)


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
