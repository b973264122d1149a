"""Measuring several variants side by side on a machine that is not quiet."""
import platform
import statistics
import time
from typing import NamedTuple

import torch


class Measurement(NamedTuple):
    """Times of one variant, and their ratios to the baseline's.

    Attributes:
        seconds (list[float]): One entry a round.
        ratios (list[float]): Time over the baseline's of the same round.
    """
    seconds: list
    ratios: list

    def summary(self):
        """dict[str, float]: Medians and the quartiles of the ratio."""
        low, _, high = statistics.quantiles(self.ratios, n=4)
        return dict(
            seconds=statistics.median(self.seconds),
            ratio=statistics.median(self.ratios),
            ratio_low=low,
            ratio_high=high)


def machine(device):
    """One line that says what the figures were measured on."""
    name = processor()
    if device.type == 'cuda':
        name = torch.cuda.get_device_name(device)
    return (f'{name}, torch {torch.__version__}, Python '
            f'{platform.python_version()}, {torch.get_num_threads()} threads')


def processor():
    """Name of the processor, as far as the system tells."""
    try:
        with open('/proc/cpuinfo') as lines:
            names = [line for line in lines if line.startswith('model name')]
        return names[0].partition(':')[2].strip()
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def forward(module, x):
    """One inference."""
    with torch.no_grad():
        module(x)


def forward_backward(module, x):
    """One training step without the optimizer's."""
    module.zero_grad()
    sum(out.sum() for out in module(x)).backward()


def measure(modules, x, step, rounds, progress=iter):
    """Times each module once a round, the order turning round by round.

    Neighbours in time see the same machine, so the ratios within a round are
    steadier than the times themselves.

    Args:
        modules (dict[str, nn.Module]): The baseline first.
        x (Tensor): Their input.
        step (Callable): Runs a module on the input.
        rounds (int): Number of rounds after a warm-up.
        progress (Callable): Wraps the rounds, to show how far it is.

    Returns:
        dict[str, Measurement]: By name.
    """
    names = list(modules)
    seconds = {name: [] for name in names}
    for module in modules.values():
        step(module, x)
    for i in progress(range(rounds)):
        turn = i % len(names)
        for name in names[turn:] + names[:turn]:
            synchronize(x.device)
            start = time.perf_counter()
            step(modules[name], x)
            synchronize(x.device)
            seconds[name].append(time.perf_counter() - start)
    base = seconds[names[0]]
    return {
        name: Measurement(seconds[name],
                          [t / b for t, b in zip(seconds[name], base)])
        for name in names
    }


def synchronize(device):
    """Waits for a GPU's queue; a CPU has none."""
    if device.type == 'cuda':
        torch.cuda.synchronize(device)
