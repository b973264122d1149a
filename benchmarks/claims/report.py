"""The numbers of the claims' page: figures, and a table above each."""

import re
from itertools import islice

import numpy as np
from side_by_side.plot import plot_lines
from side_by_side.report import markdown

from .claim import judge
from .exact import FINDINGS
from .figures import plot_depths, plot_parts, plot_scores, plot_times
from .looks import SIZES
from .trained import CLAIMS


def page(text, findings, verdicts):
    """The page, Markdown, with tables of findings, numbers by name, and of what
    :func:`judged` returned."""
    for name, (_, show) in FINDINGS.items():
        shown = findings[name] and show(findings[name])[0]
        text = put(text, name, *shown) if shown else text
    titles = ['part', 'effect', 'interval', 'margin', 'could be seen', 'seeds']
    for name, of_claim in verdicts.items():
        text = put(text, name, [*titles, 'verdict'], map(row, of_claim))
    return text


def put(text, name, titles, rows):
    """Replaces the table above the figure of a name, ValueError if there is none."""
    table = rf'(?:^\|.*\n)+(?=\n[^\n]*\(claims/{name}\.)'
    lines = markdown(titles, rows)
    text, count = re.subn(table, lambda _: f'{lines}\n', text, count=1, flags=re.M)
    if not count:
        raise ValueError(f'the page has no table above claims/{name}')
    return text


def judged(runs):
    """Verdicts of all parts, by the name of their claim, from what
    :meth:`Plan.record` returned."""
    parts = [part for claim in CLAIMS.values() for part in claim]
    verdicts = iter(judge(parts, outcomes(runs)))
    return {name: list(islice(verdicts, len(claim))) for name, claim in CLAIMS.items()}


def draw(runs, verdicts, findings, folder):
    """Draws figures of what :meth:`Plan.record` and :func:`judged` returned, and of
    findings, numbers by name, those of ``times`` among them."""
    scores = {
        data: {
            name: [seed['score'] for seed in model['seeds'].values()]
            for name, model in models.items()
        }
        for data, models in runs.items()
    }
    for name, of_claim in verdicts.items():
        plot_parts(of_claim, folder / f'{name}.png')
    plot_scores(scores, folder / 'scores.png')
    for name, (_, show) in FINDINGS.items():
        if findings[name]:
            plot_lines(show(findings[name])[1], folder / f'{name}.png')
    looks = {name: [*x['looks'].values()] for name, x in runs['cifar10'].items()}
    if any(looks.values()):
        plot_depths(looks, folder / 'depths.png')
    if findings['times']:
        plot_times(scores['cifar10'], findings['times'], folder / 'times.png')


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


def row(found):
    """A verdict as a row of the table."""
    part = found.part
    effect = interval = seen = '-'
    if found.interval:
        digits = 3 if np.abs(found.interval).max() > 0.01 else 4
        effect, *ends = (f'{x:+.{digits}f}' for x in (found.effect, *found.interval))
        interval = ' to '.join(ends)
        seen = f'{found.seen:.{digits}f}' if found.seen < 1 else 'none'
    margin = f'within {part.margin:g}' if part.equal else f'above {part.margin:g}'
    verdict = f'**{found.verdict}**' + f': {found.reason}' * bool(found.reason)
    seeds = ' / '.join(map(str, found.seeds))
    return [part.text, effect, interval, margin, seen, seeds, verdict]
