"""How long a training takes here, before it runs and after ten iterations."""

import copy
import math
import sys
from collections.abc import Callable
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.hooks import Hook
from mmengine.optim import build_optim_wrapper

from mmlinattn.engine.preflight.building import build_model, error_in
from mmlinattn.utils.log import quiet
from mmlinattn.utils.measuring import seconds_of

from .preparation import drop_amp, loader_in_process, place

STEPS = 4  # at most, behind the first one, which also prepares
BEGIN = 10  # iterations before the second estimate


class Estimate(NamedTuple):
    """What a training costs on this machine.

    Attributes:
        step (float): Seconds of an iteration.
        batch (int): Photos of an iteration on a device.
        size (tuple[int]): Width and height of its photos, in pixels, with padding.
        memory (float): GB that it takes: of a GPU, or of this process without one.
        prediction (float): Seconds of a photo of the validation.
        training (float): Seconds of the whole training, validations included.
    """

    step: float
    batch: int
    size: tuple[int, int]
    memory: float
    prediction: float
    training: float

    def describe(self) -> str:
        """Return the figures in words."""
        device = 'of the GPU' if get_device() != 'cpu' else 'of memory'
        memory = f'{self.memory:.1f} GB {device}'
        width, height = self.size
        return (
            f'measured here: {seconds_text(self.step / self.batch)} a photo of {width} '
            f'x {height} in training, {seconds_text(self.prediction)} in prediction, '
            f'{memory}; the training takes {duration(self.training)}'
        )


def estimate(cfg: Config, budget: float = 8.0) -> Estimate:
    """Measure some iterations of a training, on the first photos, without weights.

    Nothing is written, and nothing is downloaded.

    Args:
        cfg: The config of a training by epochs, as new-config writes it.
        budget: Seconds after which no other iteration begins.

    Returns:
        The median of the iterations, and what follows from it for the whole training.

    Raises:
        RuntimeError: And other errors of the libraries, where a training would raise
            them, too, such as that of a GPU without enough memory.
    """
    cfg, begin = copy.deepcopy(cfg), perf_counter()
    drop_amp(cfg, get_device())
    with error_in(cfg, 'model'):
        loaders: dict[str, Any] = {
            name: loader_in_process(cfg[f'{name}_dataloader'])
            for name in ('train', 'val')
        }
        model: Any = place(build_model(cfg), get_device())
        wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
        batch = next(iter(loaders['train']))

        def step() -> None:
            model.train()
            model.train_step(copy.deepcopy(batch), wrapper)

        if get_device() == 'cuda':
            torch.cuda.reset_peak_memory_stats()
        step_time = measure(step, begin + budget)
        memory, size = memory_used(), size_of(model, batch)
        photo = next(iter(loaders['val']))
        num = len(photo['inputs'])

        def predict() -> None:
            model.eval()
            with torch.no_grad():
                model.val_step(copy.deepcopy(photo))

        prediction = measure(predict, begin + budget * 1.25) / num
    epochs = cfg.train_cfg.max_epochs
    every = cfg.train_cfg.get('val_interval', 1)
    photos = len(loaders['val'].dataset)
    validations = math.ceil(epochs / every) * photos * prediction
    steps = epochs * len(loaders['train']) // devices_of(cfg)
    return Estimate(
        step=step_time,
        batch=len(batch['inputs']),
        size=size,
        memory=memory,
        prediction=prediction,
        training=steps * step_time + validations / devices_of(cfg),
    )


def devices_of(cfg: Config) -> int:
    """Return devices that the config is for, from the batch of all of them."""
    whole = cfg.get('auto_scale_lr', {}).get('base_batch_size', 0)
    return max(1, whole // cfg.train_dataloader.batch_size)


def measure(run: Callable[[], None], end: float) -> float:
    """Return the median of the seconds of runs behind the first one, which end before a
    time; that of the first one, if there is no time for others."""
    times: list[float] = []
    while not times or (len(times) <= STEPS and perf_counter() + times[-1] < end):
        times.append(seconds_of(run, get_device()))
    return median(times[1:] or times)


def memory_used() -> float:
    """GB of a GPU, or of this process, at the most so far."""
    if get_device() == 'cuda':
        return torch.cuda.max_memory_allocated() / 1e9
    if sys.platform == 'win32':
        return 0.0
    resource = import_module('resource')
    unit = 1 if sys.platform == 'darwin' else 1024  # bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def size_of(model: Any, batch: Any) -> tuple[int, int]:
    """Return width and height of photos as the model sees them."""
    inputs = model.data_preprocessor(copy.deepcopy(batch), True)['inputs']
    return inputs.shape[-1], inputs.shape[-2]


def seconds_text(seconds: float) -> str:
    """Return seconds with two digits, such as 0.052 s and 14 s."""
    digits = max(0, 1 - math.floor(math.log10(max(seconds, 1e-4))))
    return f'{seconds:.{digits}f} s'


def duration(seconds: float) -> str:
    """Return a rounded length of time, such as about 2 h 10 min."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return 'less than a minute'
    if minutes < 100:
        return f'about {minutes} min'
    hours, minutes = divmod(10 * round(seconds / 600), 60)
    if hours < 48:
        return f'about {hours} h' + (f' {minutes} min' if minutes else '')
    return f'about {round(seconds / 86400)} days'


class TimeLeft(Hook):
    """Says once, after ten iterations, how long a training still takes.

    Args:
        say (Callable): Takes the line.
    """

    # behind the timer
    priority = 'VERY_LOW'

    def __init__(self, say: Callable[[str], object]) -> None:
        self.say = say
        self.times: list[float] = []

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        """Read the clock."""
        if len(self.times) > BEGIN:
            return
        self.times.append(perf_counter())
        if len(self.times) <= BEGIN:
            return
        # differences of iterations, of which the first one prepares
        steps = [b - a for a, b in zip(self.times, self.times[1:])]
        left = runner.max_iters - runner.iter - 1
        if left > 0:
            self.say(
                f'{duration(left * median(steps))} left without validations: {left} '
                f'iterations of {seconds_text(median(steps))}'
            )


def estimate_line(cfg: Config) -> str:
    """:func:`estimate` in a line, or why it is not known."""
    try:
        with quiet():
            return estimate(cfg).describe()
    except Exception as error:  # of any library, and the config is written
        reason = ' '.join(str(error).split())[:200]
        return f'the speed was not measured ({type(error).__name__}: {reason})'
