"""What a claim is, and the rule by which its numbers become a verdict.

The rule: each part of a claim is one number a seed, its effect, positive the further
the claim holds. Over n seeds with mean e and standard deviation s, the interval
e +- t s / sqrt(n) has the one-sided 95 % quantile t of Student's distribution with
n - 1 degrees of freedom. The part is

- shown, if the whole interval is above the margin, which the experiment's file states;
- not shown, if no part of the interval is above the margin;
- "can't be told at this size" otherwise, with a single seed, or where the experiment
  itself says why its numbers can't tell, such as scores that are all near the top.

A claim is shown if all parts are, not shown if one is not, and can't be told otherwise.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

SHOWN = 'shown'
NOT_SHOWN = 'not shown'
CANT_TELL = "can't be told at this size"
NOT_RUN = 'not run yet'

# One-sided 95 % quantiles of Student's distribution by degrees of freedom.
STUDENT = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833)
MAX_SEEDS = len(STUDENT) + 1
# A best held-back score above it does not spread models apart.
CEILING = 0.97

Runs = dict[str, dict[str, dict[str, Any]]]  # seed, unit, numbers
OfSeed = dict[str, dict[str, Any]]


class Part(NamedTuple):
    """One comparison that the claim stands or falls with.

    Attributes:
        text (str): What is claimed, with what the effect is.
        effect (callable): Of the numbers of one seed by unit.
        margin (float): What the effect must exceed.
        doubt (callable): Takes all runs and this part's mean effect. Returns why the
            numbers can't tell, or None.
    """

    text: str
    effect: Callable[[OfSeed], float]
    margin: float = 0.0
    doubt: Callable[[Runs, float], Optional[str]] = lambda runs, effect: None


class Finding(NamedTuple):
    """A part with its numbers; see the rule above."""

    text: str
    margin: float
    effects: list[float]
    mean: float
    interval: Optional[tuple[float, float]]
    verdict: str
    reason: Optional[str]


class Claim(NamedTuple):
    """A claim of a paper and its experiment.

    Attributes:
        name (str): For ``--claim``.
        title (str): A few words.
        claim (str): What the paper says.
        paper (str): Its table or figure.
        setting (str): What is done here, and why so; Markdown.
        limits (str): What the setting can not tell.
        settings (dict): Numbers of the full run.
        smoke (dict): What differs in ``--smoke``.
        minutes (float): Estimate for three seeds on two cores.
        units (callable): Names of a seed's pieces of work, from the settings.
        measure (callable): Takes a unit and a :class:`Context`. Returns numbers.
        parts (Sequence[Part]): What is judged.
        tables (callable): Tables of all runs, (caption, titles, rows) each.
        plot (callable): Draws all runs to a path.
        data (tuple[str]): What it reads of :mod:`data`: 'classification' and
            'detection'.
    """

    name: str
    title: str
    claim: str
    paper: str
    setting: str
    limits: str
    settings: dict[str, Any]
    smoke: dict[str, Any]
    minutes: float
    units: Callable[[dict[str, Any]], list[str]]
    measure: Callable[[str, 'Context'], dict[str, Any]]
    parts: Sequence[Part]
    tables: Callable[[Runs], list[tuple[str, list[str], list[list[str]]]]]
    plot: Callable[[Runs, Path], None]
    data: tuple[str, ...] = ()


class Context(NamedTuple):
    """What a measurement is given.

    Attributes:
        settings (dict): Of the claim.
        seed (int): Of weights and of the order of the data.
        device (torch.device): Where to run.
        work_dir (Path): Folder for data and weights.
        data (Any): :class:`data.Data`.
        track (callable): Wraps an iterable with a progress bar, given a description.
    """

    settings: dict[str, Any]
    seed: int
    device: Any
    work_dir: Path
    data: Any
    track: Callable[..., Iterable]


def finished(runs: Runs, units: Sequence[str]) -> Runs:
    """Seeds of which every unit is there."""
    return {
        seed: {unit: of_seed[unit] for unit in units}
        for seed, of_seed in runs.items()
        if all(unit in of_seed for unit in units)
    }


def judge(part: Part, runs: Runs) -> Finding:
    """Applies the rule to one part.

    Args:
        part (Part): The part.
        runs (dict): Complete seeds, at least one.

    Returns:
        Finding: Numbers and verdict.

    Raises:
        ValueError: If there are more than ``MAX_SEEDS`` seeds.
    """
    effects = [float(part.effect(of_seed)) for of_seed in runs.values()]
    mean = statistics.fmean(effects)
    reason = part.doubt(runs, mean)
    interval = None
    if not all(map(math.isfinite, effects)):
        reason = reason or 'an effect is not finite'
    elif len(effects) < 2:
        reason = reason or 'one seed has no spread'
    else:
        interval = bounds(effects)
    if reason is not None or interval is None:
        verdict = CANT_TELL
    elif interval[0] > part.margin:
        verdict = SHOWN
    elif interval[1] <= part.margin:
        verdict = NOT_SHOWN
    else:
        verdict = CANT_TELL
    return Finding(part.text, part.margin, effects, mean, interval, verdict, reason)


def bounds(values: Sequence[float]) -> tuple[float, float]:
    """The interval of the rule, for 2 to ``MAX_SEEDS`` finite values."""
    num = len(values)
    if not 2 <= num <= MAX_SEEDS:
        raise ValueError(f'values must be 2 to {MAX_SEEDS}, got {num}')
    mean = statistics.fmean(values)
    half = STUDENT[num - 2] * statistics.stdev(values) / math.sqrt(num)
    return mean - half, mean + half


def overall(findings: Sequence[Finding]) -> str:
    """Verdict of a claim from those of its parts."""
    verdicts = {finding.verdict for finding in findings}
    if verdicts == {SHOWN}:
        return SHOWN
    return NOT_SHOWN if NOT_SHOWN in verdicts else CANT_TELL


def scores_doubt(key: str, least: float) -> Callable[[Runs, float], Optional[str]]:
    """Why scores can't tell: the best is near the top, or has hardly left the start.

    Args:
        key (str): The score among a unit's numbers. Units without it don't count.
        least (float): What the best mean score must reach.
    """

    def doubt(runs: Runs, effect: float) -> Optional[str]:
        best = max(
            statistics.fmean(of_seed[unit][key] for of_seed in runs.values())
            for unit in next(iter(runs.values()))
            if key in next(iter(runs.values()))[unit]
        )
        if best > CEILING:
            return f'the best score, {best:.3f}, is above {CEILING}'
        if best < least:
            return f'the best score, {best:.3f}, is below {least:.3f}: too short'
        return None

    return doubt


def values_of(runs: Runs, unit: str, *keys: str) -> list[Any]:
    """A unit's number in every seed; keys lead to nested ones."""
    found = []
    for of_seed in runs.values():
        value: Any = of_seed[unit]
        for key in keys:
            value = value[key]
        found.append(value)
    return found


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean and standard deviation as text."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return f'{mean:.{digits}f}'
    return f'{mean:.{digits}f} ± {statistics.stdev(values):.{digits}f}'
