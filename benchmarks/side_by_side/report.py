"""Tables of what was measured."""

import json
import platform
import statistics
from pathlib import Path

import torch

from mmlinattn.utils.files import whole_file

from .cases import size

MEASURED = '<!-- measured -->'


def machine(device):
    """Return one line that says what the figures were measured on."""
    threads = torch.get_num_threads()
    name = platform.processor() or platform.machine()
    info = Path('/proc/cpuinfo')
    for line in info.read_text().splitlines() if info.exists() else ():
        if line.startswith('model name'):
            name = line.partition(':')[2].strip()
    name += f', {threads} thread{"s" if threads > 1 else ""}'
    if device == 'cuda':
        name = f'{torch.cuda.get_device_name()}, {name}'
    return f'{name}, torch {torch.__version__}, Python {platform.python_version()}'


def summary(seconds, baseline=None):
    """Return medians and quartiles of a variant's times by round, and of their ratios
    over the baseline's in the same round, or in the latest one that a slow baseline
    took part in. Quartiles of one value are None."""
    times = list(seconds.values())
    figures = dict(seconds=statistics.median(times), seconds_quartiles=quartiles(times))
    if baseline:
        ratios = [
            t / baseline[max(j for j in baseline if j <= i)] for i, t in seconds.items()
        ]
        figures.update(
            ratio=statistics.median(ratios), ratio_quartiles=quartiles(ratios)
        )
    return figures


def quartiles(values):
    if len(values) < 2:
        return None
    low, _, high = statistics.quantiles(values, n=4, method='inclusive')
    return low, high


def make_rows(case, step, pairs, times, peaks):
    """Return one row for each pair of a variant and its baseline, without what is not
    known; times are seconds by variant and round, peaks what ``peak_of_variant``
    returned."""
    rows = []
    for variant, base in pairs:
        row = dict(
            case=case.name,
            shape=case.shape,
            step=step,
            variant=variant,
            baseline=base,
            paper=case.paper.get((variant, base)),
            **peaks[variant],
        )
        if row.get('bytes') and peaks[base].get('bytes'):
            row['memory_ratio'] = row['bytes'] / peaks[base]['bytes']
        if variant in times:
            row.update(summary(times[variant], times.get(base)))
        rows.append({key: value for key, value in row.items() if value is not None})
    return rows


def milliseconds(seconds):
    return f'{1000 * seconds:.4g}' if seconds < 1 else f'{1000 * seconds:.0f}'


def span(text):
    """Return a pair of values as text, each by ``text``."""
    return lambda pair: ' - '.join(map(text, pair))


# Title, key of the row, and the value's text; a column without values is left out.
COLUMNS = (
    ('model', 'case', str),
    ('input', 'shape', size),
    ('step', 'step', str),
    ('variant', 'variant', str),
    ('over', 'baseline', str),
    ('time, ms', 'seconds', milliseconds),
    ('its quartiles', 'seconds_quartiles', span(milliseconds)),
    ('time ratio', 'ratio', '{:.3f}'.format),
    ('its quartiles', 'ratio_quartiles', span('{:.3f}'.format)),
    ('faster', 'ratio', lambda ratio: f'{1 / ratio:.2f}x'),
    ('paper', 'paper', lambda pair: f'{"-".join(map(str, pair))}x'),
    ('memory, MiB', 'bytes', lambda count: f'{count / 2**20:.1f}'),
    ('memory ratio', 'memory_ratio', '{:.3f}'.format),
    ('not measured', 'error', str),
)


def markdown(titles, lines):
    """Return a Markdown table."""
    rows = [titles, ['---'] * len(titles), *lines]
    return '\n'.join(f'| {" | ".join(row)} |' for row in rows)


def table(rows):
    """Return rows as a Markdown table."""
    columns = [column for column in COLUMNS if any(column[1] in row for row in rows)]
    lines = [
        [text(row[key]) if key in row else '-' for _, key, text in columns]
        for row in rows
    ]
    return markdown([title for title, _, _ in columns], lines)


def describe(args, rows):
    """Return what was measured, on what and how, in Markdown."""
    what = f'Suite `{args.suite}`, {args.dtype}, up to {args.rounds} rounds'
    if args.device == 'cpu':
        what += f', freed memory {args.freed_memory}'
    if args.small:
        what += ', small inputs: figures mean nothing'
    return f'{what}.\n{machine(args.device)}.\n\n{table(rows)}\n'


def write_page(path, text):
    """Write a page below what a person wrote above the mark of an earlier one."""
    text = f'{MEASURED}\n{text}'
    if path.exists():
        above, mark, _ = path.read_text('utf-8').partition(MEASURED)
        text = above * bool(mark) + text
    path.write_text(text, 'utf-8')


def write_json(path, args, rows):
    """Write rows whole or not at all, one a line."""
    head = dict(machine=machine(args.device), dtype=args.dtype, small=args.small)
    if args.device == 'cpu':
        head['freed_memory'] = args.freed_memory
    lines = ',\n  '.join(map(json.dumps, rows))
    with whole_file(path) as draft:
        text = f'{json.dumps(head)[:-1]},\n "rows": [\n  {lines}\n]}}\n'
        draft.write_text(text, 'utf-8')
