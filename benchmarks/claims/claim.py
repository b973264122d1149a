"""Parts of claims, and the rule of docs/claims.md by which they are judged."""

from typing import NamedTuple, Optional

import numpy as np
from scipy import stats

SUPPORTED = 'supported'
CONTRADICTED = 'contradicted'
INCONCLUSIVE = 'inconclusive'
NOT_TESTED = 'not tested'
LEVEL, POWER = 0.05, 0.8


class Part(NamedTuple):
    """A comparison of scores: that of the first of two models less that of the other
    exceeds the margin, or is within plus and minus it if they are ``equal``. Seeds of
    ``paired`` models start from the same weights; below ``gate``, none has learned."""

    text: str
    models: tuple[str, str]
    margin: float = 0.0
    equal: bool = False
    paired: bool = False
    gate: float = 0.6
    data: str = 'imagenette'


class Verdict(NamedTuple):
    """A part with its numbers. ``seen`` is how far beyond its margin an effect is seen
    four times of five, ``seeds`` how many there are of each model."""

    part: Part
    verdict: str
    reason: str = ''
    effect: float = float('nan')
    interval: Optional[tuple[float, float]] = None
    seen: float = float('nan')
    seeds: tuple[int, int] = (0, 0)


def judge(parts, right):
    """Verdicts of all parts of a page, in the same order, from the photos' parts of the
    score, (N,), by data, model and seed."""
    verdicts, chances = [], {}
    for i, part in enumerate(parts):
        seeds = [right.get(part.data, {}).get(name, {}) for name in part.models]
        found = Verdict(part, NOT_TESTED, seeds=(len(seeds[0]), len(seeds[1])))
        if part.paired:
            both = sorted(seeds[0].keys() & seeds[1].keys())
            seeds = [{seed: x[seed] for seed in both} for x in seeds]
        scores = [float(np.mean([*x.values()])) if x else 0.0 for x in seeds]
        if min(map(len, seeds)) < 3:  # two may agree by chance
            found = found._replace(reason='fewer than three seeds')
        elif min(scores) < part.gate:
            name = part.models[int(np.argmin(scores))]
            reason = f'{name} has {min(scores):.3f}, below {part.gate:g}'
            found = found._replace(reason=reason)
        else:
            values = (np.stack([*x.values()]).astype(float) for x in seeds)
            error, freedom = error_of_effect(*values, part.paired)
            student, effect = stats.t(freedom, scale=error), scores[0] - scores[1]
            width = student.ppf(1 - LEVEL)
            room = part.margin - abs(effect) if part.equal else effect - part.margin
            found = found._replace(
                verdict=INCONCLUSIVE,
                effect=effect,
                interval=(effect - width, effect + width),
                # wherever the part comes in Holm's order
                seen=student.ppf(1 - LEVEL / len(parts)) + student.ppf(POWER),
            )
            # of as much beyond the margin if the opposite is true, and the other way
            chances[i] = student.sf(room), student.cdf(room)
        verdicts.append(found)
    # Holm: the surest part first, each with what the parts before it leave
    order = sorted(chances, key=lambda i: min(chances[i]))
    for place, i in enumerate(order):
        if min(chances[i]) > LEVEL / (len(order) - place):
            break
        verdict = (SUPPORTED, CONTRADICTED)[int(np.argmin(chances[i]))]
        verdicts[i] = verdicts[i]._replace(verdict=verdict)
    return verdicts


def error_of_effect(a, b, paired=False):
    """Standard error of a mean difference of two models, (seeds, N) each, which see the
    same N photos, and its degrees of freedom by Welch and Satterthwaite."""
    models = [a - b] if paired else [a, b]
    # with what keeps it above 0 where all seeds agree
    seeds = [(x.mean(1).var(ddof=1) / len(x) + 1e-18, len(x) - 1) for x in models]
    photos = (a.mean(0) - b.mean(0)).var() / a.shape[1]
    # what a seed makes of a photo is in both
    photos -= sum(x.var(0, ddof=1).mean() / x.size for x in models)
    terms = [*seeds, (max(photos, 0.0), a.shape[1])]
    variance = sum(x for x, _ in terms)
    return variance**0.5, variance**2 / sum(x**2 / num for x, num in terms)
