"""Timing several variants side by side on a machine that is not quiet."""

import statistics
import time
from contextlib import nullcontext
from functools import lru_cache, partial

import torch

from .cases import place


def autocast(device, dtype):
    """Mixed precision for half types, nothing for float32."""
    if dtype == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype)


def forward(module, inputs, precision=nullcontext):
    """One inference.

    Args:
        module (nn.Module): What is measured.
        inputs (tuple): What it is called with.
        precision (Callable): Makes the context to call it in.
    """
    with torch.no_grad(), precision():
        module(*inputs)


def forward_backward(module, inputs, precision=nullcontext):
    """One training step without the optimizer's; see :func:`forward`."""
    with precision():
        outs = module(*inputs)
    outs = outs if isinstance(outs, (tuple, list)) else (outs,)
    torch.autograd.backward(
        outs, [gradient(out.shape, out.dtype, out.device) for out in outs]
    )


@lru_cache(maxsize=16)
def gradient(shape, dtype, device):
    """Gradient of an output: noise, and 1 for a loss."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(shape, generator=generator) if shape else torch.ones(())
    return noise.to(device, dtype)


STEPS = {'forward': forward, 'forward+backward': forward_backward}


def drop_gradients(tensors):
    """Frees what a training step leaves."""
    for x in tensors:
        if isinstance(x, torch.Tensor):
            x.grad = None


def make_inputs(case, args):
    """The case's inputs, and small ones to warm up with."""
    return tuple(
        place(case.inputs(shape, getattr(torch, args.dtype)), args.device)
        for shape in (case.shape, case.small)
    )


def build(case, args, names):
    """Modules of some variants, always with the same weights."""
    modules = {}
    for name in names:
        torch.manual_seed(0)
        modules[name] = case.variants[name]().to(args.device)
    return modules


def timed(module, inputs, step, args):
    """One step of a module, and what cleans up after it.

    Args:
        module (nn.Module): What is measured.
        inputs (tuple): What it is called with.
        step (str): A key of ``STEPS``.
        args (argparse.Namespace): With ``device`` and ``dtype``.
    """

    def run():
        module.train(step != 'forward')
        precision = partial(autocast, args.device, getattr(torch, args.dtype))
        STEPS[step](module, inputs, precision)
        synchronize(args.device)

    return run, lambda: drop_gradients([*module.parameters(), *inputs])


def measure(runs, rounds, progress=iter):
    """Times each variant once per round, in an order that changes every round.

    Runs close in time see the same machine, so ratios within a round are
    steadier than the times themselves.

    Args:
        runs (dict[str, tuple[Callable]]): By name, what is timed, and what
            cleans up after it, untimed. Both wait for the device.
        rounds (dict[str, int]): How many rounds each one takes part in; they
            are spread over those of the one that has most, the first included.
        progress (Callable): Wraps the rounds, to show how far it is.

    Returns:
        dict[str, dict[int, float]]: By name, seconds by round.
    """
    total = max(rounds.values())
    seconds = {name: {} for name in runs}
    for i in progress(range(total)):
        names = [name for name in runs if takes_part(i, rounds[name], total)]
        turn = i % len(names)
        for name in names[turn:] + names[:turn]:
            run, clean_up = runs[name]
            start = time.perf_counter()
            run()
            seconds[name][i] = time.perf_counter() - start
            clean_up()
    return seconds


def takes_part(i, rounds, total):
    """True if round i of ``total`` is one of so many evenly spread ones."""
    return i * rounds // total != (i - 1) * rounds // total


def summary(seconds, baseline=None):
    """Medians and quartiles of a variant's times and ratios.

    A ratio is over the baseline's time of the same round, or of the latest
    round that a slow baseline took part in.

    Args:
        seconds (dict[int, float]): Times of the variant by round.
        baseline (dict[int, float], optional): Times of the baseline.

    Returns:
        dict: 'seconds', 'seconds_quartiles', and with a baseline
        'ratio' and 'ratio_quartiles'. Quartiles of one value are None.
    """
    times = list(seconds.values())
    found = dict(seconds=statistics.median(times), seconds_quartiles=quartiles(times))
    if baseline:
        ratios = [
            t / baseline[max(j for j in baseline if j <= i)] for i, t in seconds.items()
        ]
        found.update(ratio=statistics.median(ratios), ratio_quartiles=quartiles(ratios))
    return found


def quartiles(values):
    if len(values) < 2:
        return None
    low, _, high = statistics.quantiles(values, n=4, method='inclusive')
    return low, high


def synchronize(device):
    """Waits for a GPU's queue; a CPU has none."""
    if device.type == 'cuda':
        torch.cuda.synchronize(device)
