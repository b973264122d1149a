"""Peak memory of one step, measured in a process of its own.

On a CPU it is the growth of the resident set: the step is warmed up on a small
input, freed memory goes back to the system, Linux is asked to forget its high-water
mark (a 5 written to /proc/self/clear_refs), and VmHWM after the step less VmRSS
before it is the result. Where there is no /proc it can't be measured. On a GPU it
is torch's own account. Input, weights and the weights' gradients are there before
and not counted; the gradients of inputs and outputs are.
"""

import argparse
import gc
import json
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import torch

from mmlinattn.utils.memory import release_memory

from .cases import place
from .timing import STEPS, autocast, drop_gradients, synchronize

# Of the memory that is free, what a step may take before it is called too large.
_SHARE = 0.9


def peak_of_variant(index, variant, step, args):
    """Starts a process that measures one step of one variant.

    Args:
        index (int): The case's place in the suite.
        variant (str): Name of the variant.
        step (str): Name of the step.
        args (argparse.Namespace): ``suite``, ``device``, ``dtype``, ``batch`` and
            ``small`` of the command.

    Returns:
        dict: 'bytes', None where they can't be measured, or 'error'.
    """
    command = [
        sys.executable,
        '-m',
        __spec__.name,
        args.suite,
        str(index),
        variant,
        step,
        '--device',
        str(args.device),
        '--dtype',
        args.dtype,
        '--batch',
        str(args.batch),
        '--threads',
        str(torch.get_num_threads()),
    ]
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    done = subprocess.run(
        command + ['--small'] * args.small,
        capture_output=True,
        text=True,
        # -m puts the current folder first: it has this package and no other
        cwd=Path(__file__).resolve().parents[1],
        env=dict(os.environ, PYTHONPATH=path),
    )
    if not done.returncode:
        return json.loads(done.stdout.splitlines()[-1])
    if done.returncode < 0:
        return dict(error=f'ended by signal {-done.returncode}; out of memory?')
    return dict(error=(done.stderr.strip().splitlines() or ['unknown error'])[-1])


def peak_bytes(step, device):
    """Bytes that a step takes above what is there before it.

    Args:
        step (Callable): What is measured.
        device (torch.device): Where it runs.

    Returns:
        int | None: None where it can't be measured.
    """
    gc.collect()
    if device.type == 'cuda':
        synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        step()
        return torch.cuda.max_memory_allocated(device) - before
    measurable = reset_high_water_mark()
    before = resident('VmRSS') if measurable else 0
    step()
    return max(resident('VmHWM') - before, 0) if measurable else None


def reset_high_water_mark():
    """Makes VmHWM start from what is resident; False where it can't."""
    release_memory()  # without glibc, what it keeps is resident before the step too
    try:
        Path('/proc/self/clear_refs').write_text('5')
    except OSError:
        return False
    return True


def resident(name):
    """A figure of /proc/self/status in bytes."""
    status = Path('/proc/self/status').read_text()
    return 1024 * int(re.search(rf'{name}:\s+(\d+) kB', status)[1])


def limit_memory():
    """Makes a step that would not fit in memory an error of its own process."""
    try:
        import resource

        free = re.search(r'MemAvailable:\s+(\d+) kB', Path('/proc/meminfo').read_text())
        limit = resident('VmData') + int(_SHARE * 1024 * int(free[1]))
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    except (ImportError, OSError, TypeError):
        pass  # not Linux: the system's own limits remain


def measure(args):
    """What the process of one variant does; see :func:`peak_of_variant`."""
    from .registry import SUITES

    device, dtype = torch.device(args.device), getattr(torch, args.dtype)
    if device.type == 'cpu':
        limit_memory()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    case = SUITES[args.suite]()[args.case].at(args.batch, args.small)
    module = case.variants[args.variant]().to(device)
    module.train(args.step != 'forward')
    inputs, warm_up = (
        place(case.inputs(shape, dtype), device) for shape in (case.shape, case.small)
    )
    precision = partial(autocast, device, dtype)
    step = STEPS[args.step]
    if step is not STEPS['forward']:
        for param in module.parameters():
            param.grad = torch.zeros_like(param)
    step(module, warm_up, precision)
    drop_gradients(warm_up)
    peak = peak_bytes(lambda: step(module, inputs, precision), device)
    return dict(bytes=peak)


def main():
    parser = argparse.ArgumentParser(
        description='Measures the peak memory of one step. The command calls it.'
    )
    parser.add_argument('suite')
    parser.add_argument('case', type=int)
    parser.add_argument('variant')
    parser.add_argument('step', choices=STEPS)
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--dtype', default='float32')
    parser.add_argument('--batch', type=int, default=1)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--small', action='store_true')
    args = parser.parse_args()
    try:
        found = measure(args)
    except ImportError as error:
        found = dict(error=str(error))
    except (MemoryError, RuntimeError) as error:
        message = str(error)
        if 'allocate memory' in message or 'out of memory' in message:
            message = 'out of memory'
        found = dict(error=message.strip().splitlines()[0])
    print(json.dumps(found))


if __name__ == '__main__':
    main()
