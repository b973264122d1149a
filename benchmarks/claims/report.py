"""The page of the claims: every word about a result is computed from its numbers."""

from itertools import chain

import numpy as np
from side_by_side.report import markdown

from .claim import __doc__ as rule
from .claim import judge
from .trained import CLAIMS

HEAD = """# What the papers claim, and what holds here

Three kinds of answers. **What follows from the equations** needs no training: exact
numbers, each with a reason and a control. **What trained networks show** are small
models on photographs, several seeds each, on one machine: they can contradict a paper
because they are small. What **is not trained yet** is listed with its command.

`python benchmarks/claims/run.py exact --out docs` writes the first part of this page,
`... train --data imagenette=DIR` trains the networks, for hours, and goes on where it
was when it is run again, and `... report --out docs` judges what is finished. `--help`
says what the folders are: photographs are not in the repository.
"""


TAIL = """## What this can not tell

- Models of a million parameters that are trained for minutes say nothing of models of
  fifty million that are trained for 300 epochs: an effect may need size or time.
- *Could be seen* is the smallest effect that would have been seen four times of five.
  What the papers report is 0.1 to 1 point, mostly less than that.
- Not measured at all: other numbers of landmarks than 49, the maps of ELFATT's paper
  that explain decisions, and times, which are in [Benchmarks](benchmarks/README.md).
"""


def page(findings, runs):
    """The whole page.

    Args:
        findings (list[tuple]): (Finding, its numbers) of those that are measured.
        runs (dict): What :meth:`Plan.record` returned.

    Returns:
        str: Markdown.
    """
    lines = [HEAD, '## What follows from the equations', '']
    for finding, numbers in findings:
        lines += [f'### {finding.title}', '', finding.text, '']
        lines += tables_of(finding.tables(numbers))
        name = finding.name
        lines += [f'![{finding.title}](claims/{name}.png)', '']
        lines += [f'Numbers: [{name}.json](claims/{name}.json).', '']
    lines += ['## What trained networks show', '']
    if any(runs['models'].values()):
        lines += [rule.partition('\n\n')[2], *models_table(runs)]
        lines += ['Numbers of every seed: [runs.json](claims/runs.json).', '']
    parts = [part for claim in CLAIMS for part in claim.parts]
    verdicts = iter(judge(parts, outcomes(runs)))
    for claim in CLAIMS:
        rows = [row(next(verdicts)) for _ in claim.parts]
        if any(row[-2] != '0 / 0' for row in rows):
            titles = ['part', 'effect', 'interval', 'margin', 'could be seen', 'seeds']
            lines += [f'### {claim.title}', '', claim.text, '']
            lines += [markdown([*titles, 'verdict'], rows), '']
    if runs['missing']:
        lines += ['## Not trained yet', '', *runs['missing'], '']
    lines.append(TAIL)
    return '\n'.join(lines)


def tables_of(tables):
    lines = []
    for caption, titles, rows in tables:
        lines += [f'{caption}:', '', markdown(titles, rows), '']
    return lines


def outcomes(runs):
    """Of all models, as :func:`judge` takes them; 'SOFT at 192' is one of its own."""
    right: dict[str, dict[str, dict[int, np.ndarray]]] = {}
    for data, models in runs['models'].items():
        of_data = right.setdefault(data, {})
        for name, model in models.items():
            for seed, x in model['seeds'].items():
                of_data.setdefault(name, {})[int(seed)] = outcome(x)
            for seed, looks in model.get('looks', {}).items():
                for label, x in looks.items():
                    of_label = of_data.setdefault(f'{name} {label}', {})
                    of_label[int(seed)] = outcome(x)
    return right


def outcome(seed):
    """Whether each photo is classified right, (N,), or the score, (1,)."""
    if 'right' not in seed:
        return np.array([seed['score']])
    packed = np.frombuffer(bytes.fromhex(seed['right']), np.uint8)
    return np.unpackbits(packed)[: seed['photos']].astype(bool)


def models_table(runs):
    rows = []
    for data, models in runs['models'].items():
        for name, model in models.items():
            seeds = model['seeds'].values()
            scores = [x['score'] for x in seeds]
            spread = f' ± {np.std(scores, ddof=1):.3f}' if len(scores) > 1 else ''
            minutes = np.mean([x['seconds'] for x in seeds]) / 60
            score = f'{np.mean(scores):.3f}{spread}'
            cells = [f'{model["lr"]:g}', str(len(scores)), score, f'{minutes:.0f}']
            rows.append([data, name, *cells])
    titles = ['data', 'model', 'rate', 'seeds', 'score', 'minutes of a processor']
    looked = []
    every = chain(*(models.items() for models in runs['models'].values()))
    for name, model in every:
        found = model.get('looks', {}).values()
        for label in next(iter(found), ()):
            score = np.mean([x[label]['score'] for x in found])
            largest = '-'
            if 'branches' in next(iter(found))[label]:
                ratios = [max(x[label]['branches']) for x in found]
                largest = f'{np.mean(ratios):.2f}'
            looked.append([f'{name} {label}', f'{score:.3f}', largest])
    titles_of_looks = ['model', 'measure', 'largest branch over its shortcut']
    return tables_of(
        [
            ('Trained models', titles, rows),
            (
                'What else is measured of them: top-1, where nothing else is said',
                titles_of_looks,
                looked,
            ),
        ]
    )


def row(found):
    """A verdict as a row of the table."""
    part = found.part
    cells = ['-', '-']
    if found.interval:
        cells = [
            f'{found.effect:+.3f}',
            ' to '.join(f'{x:+.3f}' for x in found.interval),
        ]
    margin = f'within {part.margin:g}' if part.equal else f'above {part.margin:g}'
    seen = f'{found.seen:.3f}' if found.interval else '-'
    verdict = f'**{found.verdict}**' + f': {found.reason}' * bool(found.reason)
    seeds = ' / '.join(map(str, found.seeds))
    return [part.text, *cells, margin, seen, seeds, verdict]
