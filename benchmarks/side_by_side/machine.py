"""Description of a machine."""

import platform
import subprocess

import torch


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
