"""Tables of what was measured."""

import json
import math
from itertools import groupby
from operator import itemgetter

import numpy as np

from mmlinattn.utils.files import whole_file

from .cases import size
from .timing import summary

MEASURED = '<!-- measured -->'
METHOD = """Ratios are over what "over" names, in the same round or the latest one \
that it took part in, and the median of the rounds; times are medians too, and both \
come with their quartiles. Memory is the peak of one step, in a process of its own, \
above what is there before it: on a CPU the resident set's high-water mark, on a GPU \
what torch allocates; input, weights and the weights' gradients are not counted."""


def make_rows(case, step, pairs, times, peaks):
    """One row for each comparison.

    Args:
        case (Case): The case.
        step (str): Name of the step.
        pairs (list[tuple[str]]): Variants and their baselines.
        times (dict): Seconds by variant and round.
        peaks (dict): What ``memory.peak_of_variant`` returned, by variant.

    Returns:
        list[dict]: The rows, without what is not known.
    """
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
    """A pair of values as text, each by ``text``."""
    return lambda pair: ' - '.join(map(text, pair))


def times_faster(ratio):
    return f'{1 / ratio:.2f}x'


# Title, key of the row, and the value's text; a column without values is left out.
COLUMNS = (
    ('model', 'case', str),
    ('input', 'shape', size),
    ('precision', 'dtype', str),
    ('step', 'step', str),
    ('variant', 'variant', str),
    ('over', 'baseline', str),
    ('time, ms', 'seconds', milliseconds),
    ('its quartiles', 'seconds_quartiles', span(milliseconds)),
    ('time ratio', 'ratio', '{:.3f}'.format),
    ('its quartiles', 'ratio_quartiles', span('{:.3f}'.format)),
    ('faster', 'ratio', times_faster),
    ('paper', 'paper', lambda pair: f'{"-".join(map(str, dict.fromkeys(pair)))}x'),
    ('memory, MiB', 'bytes', lambda count: f'{count / 2**20:.1f}'),
    ('memory ratio', 'memory_ratio', '{:.3f}'.format),
    ('not measured', 'error', str),
)


def markdown(titles, lines):
    """A Markdown table."""
    rows = [titles, ['---'] * len(titles), *lines]
    return '\n'.join(f'| {" | ".join(row)} |' for row in rows)


def table(rows):
    """Rows as a Markdown table."""
    columns = [
        column
        for column in COLUMNS
        if any(row.get(column[1]) is not None for row in rows)
    ]
    lines = [
        ['-' if row.get(key) is None else text(row[key]) for _, key, text in columns]
        for row in rows
    ]
    return markdown([title for title, _, _ in columns], lines)


def growth(rows):
    """Memory against the number of tokens N.

    Args:
        rows (list[dict]): Rows of cases that differ in the size of their maps.

    Returns:
        list[dict]: One a case, step and variant: 'tokens', 'bytes', and
        'exponent' of the power of N that fits best, None for less than two
        points.
    """

    groups = {}
    for row in rows:
        points = groups.setdefault((row['case'], row['step'], row['variant']), [])
        if row.get('bytes'):
            points.append((math.prod(row['shape'][2:]), row['bytes']))
    curves = []
    for (case, step, variant), points in sorted(groups.items()):
        tokens, counts = zip(*sorted(points)) if points else ((), ())
        curve = dict(tokens=list(tokens), bytes=list(counts), exponent=exponent(points))
        curves.append(dict(curve, case=case, step=step, variant=variant))
    return curves


def exponent(points):
    """Slope of the line that fits log y over log x best."""
    if len(points) < 2:
        return None
    return float(np.polyfit(*np.log(points).T, 1)[0])


def growth_tables(curves):
    """Curves as Markdown tables, one a case and step."""
    tables = []
    for (case, step), group in groupby(curves, itemgetter('case', 'step')):
        group = list(group)
        tokens = sorted({n for curve in group for n in curve['tokens']})
        lines = []
        for curve in group:
            found = dict(zip(curve['tokens'], curve['bytes']))
            fit = curve['exponent']
            lines.append(
                [
                    curve['variant'],
                    *(f'{found[n] / 2**20:.1f}' if n in found else '-' for n in tokens),
                    '-' if fit is None else f'{fit:.3f}',
                ]
            )
        titles = ['attention', *(f'N = {n:,}' for n in tokens), 'exponent']
        tables.append(f'{case}, {step}: memory, MiB\n\n{markdown(titles, lines)}')
    return '\n\n'.join(tables)


def write_page(path, text):
    """Writes a page below what a person wrote above the mark of an earlier one."""
    text = f'{MEASURED}\n{text}'
    if path.exists():
        above, mark, _ = path.read_text('utf-8').partition(MEASURED)
        text = above * bool(mark) + text
    path.write_text(text, 'utf-8')


def write_json(path, record, depth=2):
    """Writes a record whole or not at all, what is nested deeper on a line each."""
    with whole_file(path) as draft:
        draft.write_text(as_lines(record, depth) + '\n', 'utf-8')


def as_lines(value, depth, indent=''):
    """JSON in which containers below ``depth``, and those of plain values, take one
    line."""
    inner = value.values() if isinstance(value, dict) else value
    if not depth or not any(isinstance(x, (dict, list)) for x in inner):
        return json.dumps(value)
    begin, end = '{}' if isinstance(value, dict) else '[]'
    indent += ' '
    lines = []
    for x in value:
        key = ''
        if isinstance(value, dict):
            key, x = f'{json.dumps(x)}: ', value[x]
        is_container = isinstance(x, (dict, list))
        text = as_lines(x, depth - 1, indent) if is_container else json.dumps(x)
        lines.append(f'\n{indent}{key}{text}')
    return begin + ','.join(lines) + f'\n{indent[1:]}{end}'
