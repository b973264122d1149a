"""Pages of the claims: every word about a result is computed from its numbers, but for
notes that a person wrote beside them."""

from side_by_side.report import markdown

from .claim import CANT_TELL, NOT_RUN, NOT_SHOWN, SHOWN, judge, overall

HEAD = """# The papers' claims in miniature

Does it do what the papers say, in this code, on one machine? Each claim here is a small
experiment with fixed seeds: tiny models, small images, hundreds of steps on a CPU.
Settings are from the papers, and nothing was tuned until a claim came true. A small
experiment can contradict a paper because it is small: each
section says what its setting can not tell.

`python benchmarks/claims/run.py --out docs` writes this page and the files beside it,
`--claim NAME` runs one claim, `--data FOLDER` runs it on your own images in COCO's
layout. The same seeds give the same scores on the same machine; times differ. What is
below took {minutes:.0f} minutes; `--help` estimates how long a run takes.

## How a verdict is made

Each part of a claim is one number a seed, its *effect*, positive the further the claim
holds. Over n seeds with mean e and standard deviation s, the interval is e ± t s / √n
with the one-sided 95 % quantile t of Student's distribution with n - 1 degrees of
freedom. A part is **{SHOWN}** if the whole interval is above its margin, and
**{NOT_SHOWN}** if no part of the interval is. It **{CANT_TELL}** otherwise, with one
seed, or for a reason that is given. A claim is shown if all of its parts are, and not
shown if one is not.

## Verdicts

{verdicts}

The images, if not a user's own, are shapes of
`tools/dataset_converters/make_shapes.py`: circles, squares and triangles. In
classification they are 0.3 to 0.6 of the image's side, with stripes on every region,
among the usual lines and blobs; for ELFATT's parts and oversmoothing 0.4 to 0.6,
without stripes, lines and blobs. In detection they are 0.14 to 0.42 of it, striped,
among three times as many lines and blobs, up to half hidden by each other and by blobs.
Training and held-back images differ; all scores are of held-back ones.

After first runs, settings of classification were changed, for all models of a claim
alike. What decided was whether models learn at all with one seed, not the parts. Images
had been as hard as those of detection, and training 400 steps long: no model got beyond
half of them, chance being a third. With easier ones and 800 steps the default SOFT++
gets nine of ten. Swins and ViTs still learned hardly anything, so theirs are easier
yet, and Swins have a fifth of the papers' learning rate. And training had no random
crops, without which no model has seen an object of another size, whatever its attention
does with more tokens.
"""


def verdict_of(claim, runs):
    """Verdict and findings of a claim."""
    if not runs:
        return NOT_RUN, []
    findings = [judge(part, runs) for part in claim.parts]
    return overall(findings), findings


def number(value):
    return f'{value:+.3g}'


def interval_text(interval):
    return '-' if interval is None else ' to '.join(map(number, interval))


def findings_table(findings):
    """Parts as a Markdown table."""
    titles = ['part', 'effect', 'interval', 'must exceed', 'verdict']
    rows = []
    for finding in findings:
        verdict = f'**{finding.verdict}**'
        if finding.reason:
            verdict += f': {finding.reason}'
        rows.append(
            [
                finding.text,
                number(finding.mean),
                interval_text(finding.interval),
                f'{finding.margin:g}',
                verdict,
            ]
        )
    return markdown(titles, rows)


def section(claim, content, runs, notes='', level=2):
    """Markdown of one claim, with a heading of a level.

    Args:
        claim (Claim): The claim.
        content (dict | None): Its record; None if it was never run.
        runs (dict): Its finished seeds.
        notes (str): What a person has to say of these results; Markdown.
        level (int): 1 for a page of its own, which lies beside its plot.

    Returns:
        str: Markdown.
    """
    verdict, findings = verdict_of(claim, runs)
    lines = [
        f'{"#" * level} {claim.title}',
        '',
        f'**The claim.** {claim.claim}',
        '',
        f'**In the paper.** {claim.paper}',
        '',
        f'**Here.** {claim.setting}',
        '',
        f'**What it can not tell.** {claim.limits}',
        '',
        f'**Verdict: {verdict}.**',
        '',
    ]
    if not runs:
        lines += [
            'What will be judged:',
            '',
            *(f'- {part.text} (must exceed {part.margin:g})' for part in claim.parts),
            '',
            f'Estimated {claim.minutes:.0f} minutes for three seeds on two cores:',
            f'`python benchmarks/claims/run.py --claim {claim.name} --out docs`.',
            '',
        ]
        return '\n'.join(lines)
    if content['smoke']:
        lines += ['This is a smoke test: the figures mean nothing.', '']
    lines += [findings_table(findings), '']
    for caption, titles, rows in claim.tables(runs):
        lines += [f'{caption}:', '', markdown(titles, rows), '']
    if notes:
        lines += [f'**Notes**, written by hand: {notes}', '']
    folder = '' if level == 1 else 'claims/'
    count = len(runs)
    lines += [
        f'![{claim.title}]({folder}{claim.name}.png)',
        '',
        f'{count} seed{"s" * (count != 1)}, {minutes_of(content):.0f} minutes. '
        f'{content["machine"]}. Numbers of every seed: '
        f'[{claim.name}.json]({folder}{claim.name}.json).',
        '',
    ]
    return '\n'.join(lines)


def page(entries):
    """The page of all claims.

    Args:
        entries (list[tuple]): Arguments of :func:`section` of each claim.

    Returns:
        str: Markdown.
    """
    rows = []
    for claim, _, runs, _ in entries:
        verdict, findings = verdict_of(claim, runs)
        shown = sum(finding.verdict == SHOWN for finding in findings)
        parts = f'{shown} of {len(findings)} parts shown' if findings else '-'
        rows.append([f'[{claim.title}](#{anchor(claim.title)})', verdict, parts])
    head = HEAD.format(
        verdicts=markdown(['claim', 'verdict', 'parts'], rows),
        minutes=sum(minutes_of(content) for _, content, _, _ in entries if content),
        **names(),
    )
    return '\n'.join([head, *(section(*entry) for entry in entries)])


def minutes_of(content):
    """How long the measurements of a record took."""
    return sum(sum(x.values()) for x in content['seconds'].values()) / 60


def names():
    return dict(SHOWN=SHOWN, NOT_SHOWN=NOT_SHOWN, CANT_TELL=CANT_TELL)


def anchor(title):
    """GitHub's anchor of a heading."""
    kept = ''.join(x for x in title.lower() if x.isalnum() or x in ' -')
    return kept.replace(' ', '-')
