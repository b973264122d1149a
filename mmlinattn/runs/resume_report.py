"""Says at which rate a resumed training goes on, and where its schedule ends."""

import math
from collections.abc import Callable
from typing import Any

from mmengine.hooks import Hook

from .schedules import end_of, groups_of, is_by_epoch, last_iteration, schedulers_of

# What a scheduler counts, and the rates that it begins with, which are compared alone.
NO_SCHEDULE = ('last_step', '_global_step', '_last_value', 'verbose', 'base_values')


class ResumeReport(Hook):
    """Compares a resumed training with its config.

    MMEngine takes the learning rates and the schedule from the checkpoint, and the
    length and the batch from the config. The hook changes neither.

    Args:
        say (Callable): Takes the line on the rate and the end.
        warn (Callable): Takes a line on what of the config has no effect.
    """

    def __init__(
        self, say: Callable[[str], object], warn: Callable[[str], object]
    ) -> None:
        self.say = say
        self.warn = warn
        self.rates: list[float] = []  # of the config
        self.schedules: list[dict[str, Any]] = []

    def after_load_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        """Read the config's rates and schedules, which the checkpoint's replace: both
        runners of MMEngine do so between this and ``before_train``, one of them after
        ``before_run``, too."""
        self.rates = first_rates(runner)
        self.schedules = [schedule_of(scheduler) for scheduler in schedulers_of(runner)]

    def before_train(self, runner: Any) -> None:
        """Compare them with those of the checkpoint."""
        rates = [float(group['lr']) for group in groups_of(runner)]
        if not rates or not runner.iter:
            return
        rate, last, end = f'{max(rates):.3g}', last_iteration(runner), end_of(runner)
        load = f'--cfg-options load_from={runner.cfg.load_from} in place of --resume'
        if last <= runner.iter:
            self.warn(
                f'--resume: the checkpoint is at iteration {runner.iter}, the end of '
                f'the run: nothing is left to train. Set {length_key(runner)}, or, for '
                f'a new schedule, give {load}'
            )
            return
        text = (
            f'--resume: iterations {runner.iter + 1} to {last}, from a rate of {rate}'
        )
        self.say(text + (f'; its schedule ends at {end}' if end else ''))
        remarks = self.without_effect(runner)
        if end and abs(end - last) > 0.02 * last:
            remarks.append(describe_end(end, runner.iter, last, rate))
        if remarks:
            self.warn(
                '--resume keeps the rates and the schedule of the checkpoint: '
                f'{"; ".join(remarks)}. For a new schedule, give {load}'
            )

    def without_effect(self, runner: Any) -> list[str]:
        """Return what of the config's rates, schedules and batch has no effect, in
        words."""
        remarks, checkpoint_rates = [], first_rates(runner)
        if not alike(self.rates, checkpoint_rates):
            remarks.append(
                f'a rate of {max(self.rates):.3g} in the config has no effect, it was '
                f'{max(checkpoint_rates):.3g}'
            )
        for new, old in zip(self.schedules, map(schedule_of, schedulers_of(runner))):
            changed = [f'{key}={new[key]}' for key in new if new[key] != old.get(key)]
            if changed:
                remarks.append(f'{new["type"]} with {", ".join(changed)} has no effect')
        iterations = runner.epoch and runner.iter / runner.epoch
        length = len(runner.train_dataloader)
        if is_by_epoch(runner) and iterations and iterations != length:
            remarks.append(
                f'an epoch has {length} iterations, and had {iterations:.4g} before'
            )
        return remarks


def describe_end(end: int, now: int, last: int, rate: str) -> str:
    """Return where a schedule ends that does not end with the run, in words."""
    if end <= now:
        return (
            f'the schedule has ended at {end}: all iterations are at a rate of {rate}'
        )
    if end < last:
        return (
            f'the schedule ends at {end}: {last - end} iterations are at its last rate'
        )
    return f'the run ends at {last}, before its schedule does'


def length_key(runner: Any) -> str:
    """Return the option of a config that makes a training longer."""
    return f'train_cfg.max_{"epochs" if is_by_epoch(runner) else "iters"}'


def alike(first: list[float], second: list[float]) -> bool:
    """Return True if rates do not differ by more than their digits."""
    return len(first) == len(second) and all(
        math.isclose(a, b, rel_tol=1e-6) for a, b in zip(first, second)
    )


def first_rates(runner: Any) -> list[float]:
    """Return learning rates that schedules begin with."""
    return [float(group.get('initial_lr', group['lr'])) for group in groups_of(runner)]


def schedule_of(scheduler: Any) -> dict[str, Any]:
    """Return what a schedule is made of, by name."""
    kinds = (bool, int, float, str, list, dict)
    settings = {
        # milestones are counted in a dict
        key: sorted(value) if isinstance(value, dict) else value
        for key, value in scheduler.state_dict().items()
        if key not in NO_SCHEDULE and isinstance(value, kinds)
    }
    return dict(settings, type=type(scheduler).__name__)
