"""Parts of claims, and the rule of docs/claims.md by which they are judged.

Seeds and photos are drawn again, with replacement, 20,000 times. All seeds see the same
photos, so these are drawn for both models at once, and seeds for each of them, or for
both at once where they start from the same weights. As few seeds vary less than many,
their distance to the mean is stretched by the root of n / (n - 1).
"""

from typing import NamedTuple, Optional

import numpy as np

SUPPORTED = 'supported'
CONTRADICTED = 'contradicted'
INCONCLUSIVE = 'inconclusive'
NOT_TESTED = 'not tested'
LEVEL = 0.05
DRAWS, CHUNK = 20_000, 1000
# Of a normal distribution: an effect so large is seen at 5 % four times of five.
SEEN = 1.645 + 0.842


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
    """A part with its numbers; see the rule above. ``seen`` is the smallest effect that
    could have been seen, ``seeds`` how many there are of each model."""

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
        scores = [np.mean([*x.values()]) if x else 0 for x in seeds]
        if min(map(len, seeds)) < 2:
            found = found._replace(reason='fewer than two seeds')
        elif min(scores) < part.gate:
            name = part.models[int(np.argmin(scores))]
            reason = f'{name} has {min(scores):.3f}, below {part.gate:g}'
            found = found._replace(reason=reason)
        else:
            draws = resampled(*(np.stack([*x.values()]) for x in seeds), part.paired)
            found = found._replace(
                verdict=INCONCLUSIVE,
                effect=float(scores[0] - scores[1]),
                interval=tuple(np.quantile(draws, [LEVEL, 1 - LEVEL]).tolist()),
                seen=SEEN * float(draws.std()),
            )
            chances[i] = opposites(part, draws)
        verdicts.append(found)
    # Holm: the surest part first, each with what the parts before it leave
    order = sorted(chances, key=lambda i: min(chances[i]))
    for place, i in enumerate(order):
        if min(chances[i]) > LEVEL / (len(order) - place):
            break
        verdict = (SUPPORTED, CONTRADICTED)[int(np.argmin(chances[i]))]
        verdicts[i] = verdicts[i]._replace(verdict=verdict)
    return verdicts


def opposites(part, draws):
    """Shares of the draws that speak against the part, and for it."""
    margin = part.margin
    if part.equal:
        against = max((draws <= -margin).mean(), (draws >= margin).mean())
        holds = min((draws > -margin).mean(), (draws < margin).mean())
    else:
        against, holds = (draws <= margin).mean(), (draws > margin).mean()
    # not less than what so many draws can tell
    return max(float(against), 1 / DRAWS), max(float(holds), 1 / DRAWS)


def resampled(a, b, paired=False):
    """Effects (DRAWS,) of seeds and photos of two models, (seeds, N) each, that are
    drawn again, of ``paired`` models the same seeds."""
    random = np.random.default_rng(0)
    # photos of which all seeds say the same are drawn together
    patterns, counts = np.unique(np.concatenate([a, b]), axis=1, return_counts=True)
    a, b = (stretched(x.astype(np.float32)) for x in np.split(patterns, [len(a)]))
    found = []
    for _ in range(DRAWS // CHUNK):
        of_a = weights(random, np.ones(len(a), int))
        of_b = of_a if paired else weights(random, np.ones(len(b), int))
        photos = weights(random, counts)
        found.append(((of_a @ a - of_b @ b) * photos).sum(1))
    return np.concatenate(found)


def weights(random, counts):
    """How often things of each kind are drawn, of which there are so many, as shares,
    (CHUNK, kinds)."""
    num = counts.sum()
    return (random.multinomial(num, counts / num, CHUNK) / num).astype(np.float32)


def stretched(right):
    """Seeds further from their mean, see the rule above."""
    mean, num = right.mean(0), len(right)
    return mean + (right - mean) * np.float32((num / (num - 1)) ** 0.5)
