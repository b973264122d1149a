"""The page of the claims: every word about a result is computed from its numbers, but
for notes that a person wrote beside them."""

from collections import Counter

from side_by_side.report import markdown

from .claim import CONTRADICTED, INCONCLUSIVE, SUPPORTED, judge

HEAD = f"""# The papers' claims in miniature

Does it do what the papers say, in this code, on one machine? Each claim here is a small
experiment with fixed seeds: tiny models, small images, hundreds of steps on a CPU.
{{}}

A small experiment can contradict a paper because it is small: each section says what
its setting can not tell.

`python benchmarks/claims/run.py --out docs` writes this page and the files beside it,
`--claim NAME` runs one claim, `--data FOLDER` runs it on your own images, in
`train/CLASS/` and `val/CLASS/`. The same seeds give the same scores on the same
machine; times differ. `--help` estimates how long a run takes.

Without `--data`, the images are shapes of `tools/dataset_converters/make_shapes.py`.
Scores are of held-back images.

## How a verdict is made

Each part of a claim is one number a seed, its *effect*, positive the further the claim
holds. Over n seeds with mean e and standard deviation s, the interval is e ± t s / √n
with the one-sided 95 % quantile t of Student's distribution with n - 1 degrees of
freedom. A part is **{SUPPORTED}** if the whole interval is above its margin, and
**{CONTRADICTED}** if no part of the interval is. It is **{INCONCLUSIVE}** otherwise,
with one seed, or for a reason that is given.
"""


def page(records):
    """The page of all claims.

    Args:
        records (Iterable[Record]): Of every claim.

    Returns:
        str: Markdown.
    """
    sections, missing, verdicts = [], [], Counter()
    for record in records:
        if record.complete():
            sections.append(section(record))
            runs = record.complete()
            verdicts.update(judge(x, runs).verdict for x in record.claim.parts)
        else:
            missing.append(f'- {record.claim.title}: `--claim {record.claim.name}`')
    if missing:
        text = 'These need photographs, given with `--data`:'
        sections.append('\n'.join(['## Not measured yet', '', text, '', *missing, '']))
    counts = ', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())
    counts = f'Of {sum(verdicts.values())} parts of the claims measured: {counts}.'
    return '\n'.join([HEAD.format(counts), *sections])


def section(record):
    """Markdown of one claim with a finished seed."""
    claim, content, runs = record.claim, record.content, record.complete()
    lines = [
        f'## {claim.title}',
        '',
        f'**The claim.** {claim.claim}',
        '',
        f'**In the paper.** {claim.paper}',
        '',
        f'**Here.** {claim.setting}',
        '',
        f'**What it can not tell.** {claim.limits}',
        '',
    ]
    if content['smoke']:
        lines += ['This is a smoke test: the figures mean nothing.', '']
    titles = ['part', 'effect', 'interval', 'must exceed', 'verdict']
    findings = [row(judge(part, runs)) for part in claim.parts]
    lines += [markdown(titles, findings), '']
    for caption, titles, rows in claim.tables(runs):
        lines += [f'{caption}:', '', markdown(titles, rows), '']
    if record.notes():
        lines += [f'**Notes**, written by hand: {record.notes()}', '']
    minutes = sum(sum(x.values()) for x in content['seconds'].values()) / 60
    seeds = f'{len(runs)} seed{"s" * (len(runs) != 1)}, {minutes:.0f} minutes'
    lines += [
        f'![{claim.title}](claims/{claim.name}.png)',
        '',
        f'{seeds}. {content["machine"]}. Numbers of every seed: '
        f'[{claim.name}.json](claims/{claim.name}.json).',
        '',
    ]
    return '\n'.join(lines)


def row(finding):
    """A part as a row of the table."""
    verdict = f'**{finding.verdict}**'
    if finding.reason:
        verdict += f': {finding.reason}'
    interval = '-'
    if finding.interval:
        interval = ' to '.join(f'{x:+.3g}' for x in finding.interval)
    part = finding.part
    return [part.text, f'{finding.mean:+.3g}', interval, f'{part.margin:g}', verdict]
