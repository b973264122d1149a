"""Schedules of learning rates beside the length of a training."""

import copy
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, Optional

from mmengine.hooks import Hook
from torch.optim import Optimizer

# MMEngine's sign of a schedule without an end is 10^9.
NO_END = 10**8
# Kinds of schedules that may end before a run.
WARM_UPS = ('ConstantLR', 'LinearLR', 'QuadraticWarmupLR')
# A warm-up that takes a larger part of a run does not fit it.
MOST_WARM_UP = 0.25
# Steps of which the rates are computed: seconds of one processor.
MOST_STEPS = 200_000


class ScheduleReport(Hook):
    """Compares the schedule of a new training with its length. It changes neither.

    Args:
        warn (Callable): Takes a line on a schedule that does not fit.
        say (Callable, optional): Takes a line on one that fits.
    """

    def __init__(
        self,
        warn: Callable[[str], object],
        say: Optional[Callable[[str], object]] = None,
    ) -> None:
        self.warn = warn
        self.say = say

    def before_train(self, runner: Any) -> None:
        """Write the line."""
        is_known = groups_of(runner) and schedulers_of(runner)
        if not is_known or not hasattr(runner.train_dataloader, '__len__'):
            return
        last, reasons = last_iteration(runner), list(misfits(runner))
        if reasons:
            self.warn(
                f'param_scheduler does not fit this run of {last} steps: '
                f'{"; ".join(reasons)}. Set its end, T_max and milestones for {last} '
                'steps; without an end, a schedule ends with the run'
            )
        elif self.say is not None:
            rates = rates_of(runner, last)
            ends = f', {rates[-1]:.3g} at the end' if rates else ''
            self.say(f'the schedule fits the {last} steps of this run{ends}')


def misfits(runner: Any) -> Iterator[str]:
    """Yield where schedules do not fit the length of a run, in words."""
    last, end = last_iteration(runner), end_of(runner)
    rates = rates_of(runner, last)
    highest, final = max(rates, default=0.0), ''
    if rates:
        final = f', {rates[-1]:.3g}, {share(rates[-1], highest)} of the highest'
    if end and end < 0.98 * last:
        left = f'{last - end} steps ({share(last - end, last)})'
        yield f'it ends at step {end}, and {left} are at its last rate{final}'
    elif end and end > 1.02 * last:
        yield f'it is for {end} steps, so the run ends at a higher rate{final}'
    warm = max(warm_ups(runner), default=0)
    if warm > MOST_WARM_UP * last:
        base = max(float(group['initial_lr']) for group in groups_of(runner))
        reached = f', which reach a rate of {highest:.3g} of {base:.3g}'
        part = share(min(warm, last), last)
        yield f'its warm-up takes {part} of the steps{reached if rates else ""}'
    late = [first for first in first_falls(runner) if first >= last]
    if late and rates and rates[-1] == highest:
        yield f'the rate would fall at step {late[0]} first'


def share(part: float, whole: float) -> str:
    """Return a part of a whole in percent."""
    return f'{100 * part / whole:.3g} %' if whole else '0 %'


def warm_ups(runner: Any) -> Iterator[int]:
    """Yield iterations at which warm-ups end."""
    for scheduler in schedulers_of(runner):
        if is_warm_up(scheduler) and scheduler.end < NO_END:
            yield iteration(runner, scheduler.end, scheduler.by_epoch)


def first_falls(runner: Any) -> Iterator[int]:
    """Yield iterations at which schedules of steps change the rate for the first
    time."""
    for scheduler in schedulers_of(runner):
        steps = getattr(scheduler, 'milestones', None) or ()
        first = min(steps, default=getattr(scheduler, 'step_size', None))
        if first is not None:
            place = scheduler.begin + first
            yield iteration(runner, place, scheduler.by_epoch)


def rates_of(runner: Any, last: int) -> list[float]:
    """Return the highest learning rate of each step of a run, computed by copies of its
    schedules; [] for a long run, or schedules that wait for scores."""
    group = max(groups_of(runner), key=lambda group: group['initial_lr'])
    optimizer: Any = SimpleNamespace(_global_step=1, step=lambda: None)
    optimizer.step._with_counter = True
    optimizer.param_groups = [{key: group[key] for key in ('lr', 'initial_lr')}]
    schedulers = [copy.copy(scheduler) for scheduler in schedulers_of(runner)]
    if last > MOST_STEPS or any(hasattr(one, 'monitor') for one in schedulers):
        return []
    for scheduler in schedulers:
        scheduler.optimizer, scheduler.verbose = optimizer, False
        scheduler.base_values = [group['initial_lr']]
    rates, epoch = [], len(runner.train_dataloader) if is_by_epoch(runner) else math.inf
    for step in range(1, last + 1):
        rates.append(float(optimizer.param_groups[0]['lr']))
        for scheduler in schedulers:
            if not scheduler.by_epoch or step % epoch == 0:
                scheduler.step()
    return rates


def is_by_epoch(runner: Any) -> bool:
    """Return True if the length of a run is in epochs."""
    return type(runner.train_loop).__name__ != 'IterBasedTrainLoop'


def last_iteration(runner: Any) -> int:
    """Return the last iteration of a run, counted from that of its checkpoint."""
    if not is_by_epoch(runner):
        return runner.max_iters
    epochs = runner.max_epochs - runner.epoch
    return runner.iter + epochs * len(runner.train_dataloader)


def groups_of(runner: Any) -> list[dict[str, Any]]:
    """Return groups of parameters of a single optimizer; of several, []."""
    optimizer = getattr(runner.optim_wrapper, 'optimizer', None)
    return optimizer.param_groups if isinstance(optimizer, Optimizer) else []


def schedulers_of(runner: Any) -> list[Any]:
    """Return schedules of the learning rates."""
    schedulers = getattr(runner, 'param_schedulers', None)
    if not isinstance(schedulers, list):
        return []
    return [
        scheduler
        for scheduler in schedulers
        if getattr(scheduler, 'param_name', '') == 'lr'
    ]


def end_of(runner: Any) -> Optional[int]:
    """Return the iteration at which the last schedule ends, unless that is a warm-up or
    has no end."""
    ends = {}
    for scheduler in schedulers_of(runner):
        end = iteration(runner, planned_end(scheduler), scheduler.by_epoch)
        ends[end] = is_warm_up(scheduler)
    last = max(ends, default=NO_END)
    return None if last >= NO_END or ends[last] else last


def planned_end(scheduler: Any) -> int:
    """Return the step or epoch at which a schedule is to end. A run cuts a period that
    is longer; one that counts a warm-up, too, ends with the schedule."""
    period = getattr(scheduler, 'T_max', None)
    if period is None:
        return scheduler.end
    fits = scheduler.begin + period > scheduler.end >= period
    return scheduler.end if fits else scheduler.begin + period


def iteration(runner: Any, place: int, by_epoch: bool) -> int:
    """Return the iteration of a place in a schedule, counted from that of the
    checkpoint."""
    if not by_epoch or place >= NO_END:
        return place
    return runner.iter + (place - runner.epoch) * len(runner.train_dataloader)


def is_warm_up(scheduler: Any) -> bool:
    """Return whether a schedule raises the rate from the begin of a training on, or
    holds it there."""
    return type(scheduler).__name__ in WARM_UPS and scheduler.begin == 0
