"""The numbers of the claims' page: its table and its figures."""

import re
from itertools import chain, islice

import numpy as np
from side_by_side.plot import plot_lines
from side_by_side.report import markdown

from .claim import judge
from .exact import FINDINGS
from .looks import SIZES
from .trained import CLAIMS, SHOWN

TABLE = re.compile(r'^\| part \|(?:.*\n)(?:\|.*\n)*', re.M)


def page(text, verdicts):
    """The page, Markdown, with a table of what :func:`judged` returned."""
    effects = {x.part.text: x for x in chain.from_iterable(verdicts.values())}
    titles = ['part', 'effect', 'verdict', 'rank-one control', 'verdict']
    rows = []
    for part, control in SHOWN:
        cells = [effect(effects[x]) + [effects[x].verdict] for x in (part, control)]
        rows.append([part, *chain.from_iterable(cells)])
    text, count = TABLE.subn(lambda _: markdown(titles, rows) + '\n', text, count=1)
    if not count:
        raise ValueError('the page has no table that begins with "| part |"')
    return text


def judged(runs):
    """Verdicts of all parts, by the name of their claim, from what
    :meth:`Plan.record` returned."""
    parts = [part for claim in CLAIMS.values() for part in claim]
    verdicts = iter(judge(parts, outcomes(runs)))
    return {name: list(islice(verdicts, len(claim))) for name, claim in CLAIMS.items()}


def draw(findings, folder):
    """Draws figures of findings, numbers by name."""
    for name, (_, show) in FINDINGS.items():
        if findings[name]:
            plot_lines(show(findings[name]), folder / f'{name}.png')


def outcomes(runs):
    """Of all models, as :func:`judge` takes them; 'SOFT at 256' is one of its own."""
    right: dict[str, dict[str, dict[int, np.ndarray]]] = {}
    for data, models in runs.items():
        of_data, maps = right.setdefault(data, {}), {}
        for name, model in models.items():
            for seed, x in model['seeds'].items():
                of_data.setdefault(name, {})[int(seed)] = outcome(x)
            for seed, looks in model['looks'].items():
                found = {key: outcome(x) for key, x in looks.items() if key != 'maps'}
                if 'maps' in looks:
                    maps.setdefault(name, []).append(np.array(looks['maps']))
                if f'at {SIZES[-1]}' in looks:
                    found['power of N'] = power_of_n(looks)
                for label, x in found.items():
                    of_data.setdefault(f'{name} {label}', {})[int(seed)] = x
        softmax = maps.get('Swin softmax', [])
        for name, of_model in maps.items():
            pairs = zip(of_model, softmax[1:] + softmax[:1])  # of another seed
            of_data[f'{name} maps'] = dict(enumerate(alike(*x) for x in pairs))
    return right


def power_of_n(looks):
    """That of N with which attention grows over what it is added to, from the least to
    the largest photos, the mean over blocks with landmarks or windows, (1,)."""
    least, largest = (np.log(looks[f'at {x}']['branches']) for x in SIZES)
    powers = (largest - least) / (2 * np.log(SIZES[-1] / SIZES[0]))
    return powers[:-3].mean(keepdims=True)


def alike(a, b):
    """Correlations of the maps of two models, (photos,), 0 where nothing is seen."""
    a, b = (x - x.mean(1, keepdims=True) for x in (a, b))
    return (a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1)).clip(1e-9)


def outcome(seed):
    """Whether each photo is classified right, or its part of the score, (N,)."""
    if 'right' not in seed:
        return np.array(seed.get('values', [seed['score']]))
    packed = np.frombuffer(bytes.fromhex(seed['right']), np.uint8)
    return np.unpackbits(packed)[: seed['photos']].astype(bool)


def effect(found):
    """The effect of a verdict and its interval, as a cell of the table."""
    if not found.interval:
        return ['-']
    digits = 3 if np.abs(found.interval).max() > 0.01 else 4
    mean, *ends = (f'{x:+.{digits}f}' for x in (found.effect, *found.interval))
    return [f'{mean} ({" to ".join(ends)})']
