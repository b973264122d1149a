"""What a claim is, and the rule by which its parts are judged.

Each part of a claim is one number a seed, its effect, positive the further the claim
holds. Over n seeds with mean e and standard deviation s, the interval is
e +- t s / sqrt(n), with the one-sided 95 % quantile t of Student's distribution with
n - 1 degrees of freedom. The part is

- supported, if the whole interval is above the margin that the experiment states;
- contradicted, if no part of the interval is above the margin;
- inconclusive otherwise, with a single seed, or where the experiment says why its
  numbers can't tell, such as scores that are all near the top.
"""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

SUPPORTED = 'supported'
CONTRADICTED = 'contradicted'
INCONCLUSIVE = 'inconclusive'

# One-sided 95 % quantiles of Student's distribution by degrees of freedom.
STUDENT = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833)
MAX_SEEDS = len(STUDENT) + 1
# A best held-back score above it does not spread models apart.
CEILING = 0.97

Runs = dict[str, dict[str, dict[str, Any]]]  # seed, unit, numbers
OfSeed = dict[str, dict[str, Any]]


class Part(NamedTuple):
    """One comparison of a claim.

    Attributes:
        text (str): What is claimed, with what the effect is.
        effect (callable): Of the numbers of one seed by unit.
        margin (float): What the effect must exceed.
        doubt (callable): Of all runs, why they can't tell, or None.
    """

    text: str
    effect: Callable[[OfSeed], float]
    margin: float = 0.0
    doubt: Callable[[Runs], Optional[str]] = lambda runs: None


class Finding(NamedTuple):
    """A part with its numbers; see the rule above."""

    part: Part
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
        settings (dict): Numbers of the full run; with 'images' (training, held-back) it
            reads :class:`data.Data`.
        smoke (dict): What differs in ``--smoke``.
        minutes (float): Estimate for three seeds on two cores.
        units (callable): Names of a seed's pieces of work, from the settings.
        measure (callable): Takes a unit and a :class:`Context`. Returns numbers.
        parts (Sequence[Part]): What is judged.
        tables (callable): Tables of all runs, (caption, titles, rows) each.
        panels (callable): Of all runs, what ``plot_lines`` draws.
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
    panels: Callable[[Runs], list]


class Context(NamedTuple):
    """What a measurement is given.

    Attributes:
        settings (dict): Of the claim.
        seed (int): Of weights and of the order of the data.
        device (torch.device): Where to run.
        work_dir (Path): Folder for data and weights.
        data (Data | None): Its images.
    """

    settings: dict[str, Any]
    seed: int
    device: Any
    work_dir: Path
    data: Any


def judge(part: Part, runs: Runs) -> Finding:
    """Applies the rule to one part.

    Args:
        part (Part): The part.
        runs (dict): Complete seeds, one to ``MAX_SEEDS``.

    Returns:
        Finding: Numbers and verdict.
    """
    effects = [float(part.effect(of_seed)) for of_seed in runs.values()]
    mean = statistics.fmean(effects)
    if not all(map(math.isfinite, effects)):
        return Finding(part, mean, None, INCONCLUSIVE, 'an effect is not finite')
    if len(effects) < 2:
        return Finding(part, mean, None, INCONCLUSIVE, 'one seed has no spread')
    quantile = STUDENT[len(effects) - 2]
    half = quantile * statistics.stdev(effects) / math.sqrt(len(effects))
    verdict, reason = INCONCLUSIVE, part.doubt(runs)
    if reason is None and mean - half > part.margin:
        verdict = SUPPORTED
    elif reason is None and mean + half <= part.margin:
        verdict = CONTRADICTED
    return Finding(part, mean, (mean - half, mean + half), verdict, reason)


def scores_doubt(key: str, least: float) -> Callable[[Runs], Optional[str]]:
    """Why scores can't tell: the best is near the top, or has hardly left the start.

    Args:
        key (str): The score among a unit's numbers. Units without it don't count.
        least (float): What the best mean score must reach.
    """

    def doubt(runs: Runs) -> Optional[str]:
        first = next(iter(runs.values()))
        units = [unit for unit in first if key in first[unit]]
        best = max(statistics.fmean(values_of(runs, unit, key)) for unit in units)
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
