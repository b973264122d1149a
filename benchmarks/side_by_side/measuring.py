"""Time and peak memory of a step, on a machine that is not quiet.

Peak memory is that of mmlinattn.utils.measuring, on a CPU in a process of its own,
after the step was warmed up on a small input. Input, weights and the weights' gradients
are there before and not counted; the gradients of inputs and outputs are.
"""

import gc
import multiprocessing
import re
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from pathlib import Path

import torch

from mmlinattn.utils.heap import keep_freed_memory
from mmlinattn.utils.measuring import peak_bytes, resident, wait_for

from .cases import place

# Of all rounds of a variant, where these take long.
SECONDS = 120
# Of the memory that is free, what a step may take before it is called too large.
SHARE = 0.9


def prepare_process(args):
    """Set threads, and what becomes of freed memory, by the arguments. Where the
    environment decides that, the argument says so from then on."""
    torch.set_num_threads(args.threads)
    if args.freed_memory == 'kept' and not keep_freed_memory():
        args.freed_memory = 'as the environment sets it'


def make_inputs(case, args):
    """Return the case's inputs, and small ones to warm up with."""
    return tuple(
        place(case.inputs(shape, getattr(torch, args.dtype)), args.device)
        for shape in (case.shape, case.small)
    )


def build(case, args, names):
    """Return modules of some variants, always with the same weights."""
    modules = {}
    for name in names:
        torch.manual_seed(0)
        modules[name] = case.variants[name]().to(args.device)
    return modules


@lru_cache(maxsize=16)
def gradient(shape, dtype, device):
    """Return the gradient of an output: noise, and 1 for a loss."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(shape, generator=generator) if shape else torch.ones(())
    return noise.to(device, dtype)


def timed(module, inputs, step, args):
    """Return one step of a module, and what cleans up after it: 'forward', an
    inference, or 'forward+backward', a training step without the optimizer's; bfloat16
    is mixed precision."""
    trains, is_half = step != 'forward', args.dtype != 'float32'

    def run():
        module.train(trains)
        autocast = torch.autocast(args.device, torch.bfloat16, is_half)
        with torch.set_grad_enabled(trains), autocast:
            outs = module(*inputs)
        if trains:
            outs = outs if isinstance(outs, (tuple, list)) else (outs,)
            grads = [gradient(out.shape, out.dtype, out.device) for out in outs]
            torch.autograd.backward(outs, grads)
        wait_for(args.device)

    return run, lambda: drop_gradients((*module.parameters(), *inputs))


def replayed(module, inputs, step, args):
    """Return the same as :func:`timed` of an inference that a CUDA graph has
    recorded."""
    run, clean_up = timed(module, inputs, step, args)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):  # what libraries prepare can't be recorded
            run()
    graph = torch.cuda.CUDAGraph()
    autocast = torch.autocast(args.device, torch.bfloat16, args.dtype != 'float32')
    with torch.cuda.graph(graph, stream=stream), torch.no_grad(), autocast:
        module(*inputs)

    def replay():
        graph.replay()
        wait_for(args.device)

    return replay, clean_up


def drop_gradients(tensors):
    """Free what a training step leaves."""
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor):
            tensor.grad = None


def measure(runs, rounds, progress=iter):
    """Time each variant once per round, in an order that changes every round; slow
    ones in the first rounds only. Runs close in time see the same machine, so ratios
    within a round are steadier than the times themselves.

    Args:
        runs (dict[str, tuple[Callable]]): By name, what is timed, and what
            cleans up after it, untimed. Both wait for the device.
        rounds (int): How many rounds at most.
        progress (Callable): Wraps the rounds, to show how far it is.

    Returns:
        dict[str, dict[int, float]]: By name, seconds by round.
    """

    def once(name):
        run, clean_up = runs[name]
        start = time.perf_counter()
        run()
        elapsed = time.perf_counter() - start
        clean_up()
        return elapsed

    count, seconds = {}, {name: {} for name in runs}
    for name in runs:  # warms up, too
        count[name] = max(1, min(rounds, int(SECONDS / once(name))))
    for i in progress(range(max(count.values()))):
        names = [name for name in runs if i < count[name]]
        turn = i % len(names)
        for name in names[turn:] + names[:turn]:
            seconds[name][i] = once(name)
    return seconds


def peak_of_variant(index, variant, step, args):
    """Measure one step of a variant of the suite's case at ``index``, on a CPU in a
    process of its own: 'bytes', None where they can't be measured, or 'error'."""
    if args.small or args.device == 'cuda':
        # a process of its own would spend most of its time on starting
        return peak_or_error(index, variant, step, args)
    spawn = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(1, spawn, initializer=limit_memory) as pool:
        future = pool.submit(peak_or_error, index, variant, step, args)
        try:
            return future.result()
        except BrokenProcessPool:
            return dict(error='its process was ended; out of memory?')


def peak_or_error(index, variant, step, args):
    """Return the result of :func:`peak_of_variant`, measured in this process."""
    from .registry import SUITES

    prepare_process(args)
    try:
        case = SUITES[args.suite]()[index].at(args.batch, args.small)
        inputs, small = make_inputs(case, args)
        module = build(case, args, [variant])[variant]
        if step != 'forward':
            for param in module.parameters():
                param.grad = torch.zeros_like(param)
        timed(module, small, step, args)[0]()
        drop_gradients(small)  # the weights keep theirs
        return dict(bytes=peak_bytes(timed(module, inputs, step, args)[0], args.device))
    except (ImportError, MemoryError, RuntimeError) as error:
        message = str(error).strip() or type(error).__name__
        if 'allocate memory' in message or 'out of memory' in message:
            message = 'out of memory'
        else:
            wait_for(args.device)  # raises where nothing else can run either
        return dict(error=message.splitlines()[0])
    finally:
        gc.collect()
        if args.device == 'cuda':
            torch.cuda.empty_cache()


def limit_memory():
    """Make a step that would not fit in memory an error of its own process."""
    try:
        import resource

        free = re.search(r'MemAvailable:\s+(\d+) kB', Path('/proc/meminfo').read_text())
        limit = resident('VmData') + int(SHARE * 1024 * int(free[1]))
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    except (ImportError, OSError, TypeError):
        pass  # not Linux: the system's own limits remain
