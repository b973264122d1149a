"""Peak memory of one step.

On a CPU it is the growth of the resident set, in a process of its own: the step is
warmed up on a small input, freed memory goes back to the system, Linux is asked to
forget its high-water mark (a 5 written to /proc/self/clear_refs), and VmHWM after the
step less VmRSS before it is the result. Where there is no /proc it can't be measured.
On a GPU it is torch's own account. Input, weights and the weights' gradients are there
before and not counted; the gradients of inputs and outputs are.
"""

import gc
import multiprocessing
import re
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import torch

from mmlinattn.utils.memory import release_memory

from .timing import build, drop_gradients, make_inputs, synchronize, timed

# Of the memory that is free, what a step may take before it is called too large.
_SHARE = 0.9


def peak_of_variant(index, variant, step, args):
    """Measures one step of one variant, on a CPU in a process of its own.

    Args:
        index (int): The case's place in the suite.
        variant (str): Name of the variant.
        step (str): Name of the step.
        args (argparse.Namespace): ``suite``, ``device``, ``dtype``, ``batch`` and
            ``small`` of the command.

    Returns:
        dict: 'bytes', None where they can't be measured, or 'error'.
    """
    if args.small or args.device.type == 'cuda':
        # a process of its own would spend most of its time on starting
        return peak_or_error(index, variant, step, args)
    spawn = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(1, spawn, initializer=limit_memory) as pool:
        threads = torch.get_num_threads()
        found = pool.submit(peak_in_child, threads, index, variant, step, args)
        try:
            return found.result()
        except BrokenProcessPool:
            return dict(error='its process was ended; out of memory?')


def peak_in_child(threads, *args):
    torch.set_num_threads(threads)
    return peak_or_error(*args)


def peak_or_error(index, variant, step, args):
    """The result of :func:`peak_of_variant`, measured in this process."""
    try:
        return dict(bytes=measure(index, variant, step, args))
    except (ImportError, MemoryError, RuntimeError) as error:
        message = str(error).strip() or type(error).__name__
        if 'allocate memory' in message or 'out of memory' in message:
            message = 'out of memory'
        else:
            synchronize(args.device)  # raises where nothing else can run either
        return dict(error=message.splitlines()[0])
    finally:
        gc.collect()
        if args.device.type == 'cuda':
            torch.cuda.empty_cache()


def measure(index, variant, step, args):
    """Builds a variant, warms it up and measures one step of it."""
    from .registry import SUITES

    case = SUITES[args.suite]()[index].at(args.batch, args.small)
    inputs, warm_up = make_inputs(case, args)
    module = build(case, args, [variant])[variant]
    if step != 'forward':
        for param in module.parameters():
            param.grad = torch.zeros_like(param)
    run, small_run = (timed(module, x, step, args)[0] for x in (inputs, warm_up))
    small_run()
    drop_gradients(warm_up)
    return peak_bytes(run, args.device)


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
