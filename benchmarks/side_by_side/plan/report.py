"""Results of a plan as Markdown."""

from ..cases import size
from ..report import markdown, milliseconds, table
from .measuring import METHOD, ROUNDS
from .parts import PARTS

TEXTS = {
    'shape': size,
    'seconds': milliseconds,
    'eager_seconds': milliseconds,
    'graph_seconds': milliseconds,
    'bytes': lambda count: f'{count / 2**20:.1f}',
}
TITLES = {
    'seconds': 'time, ms',
    'eager_seconds': 'without, ms',
    'graph_seconds': 'as a graph, ms',
    'bytes': 'memory, MiB',
}
# Rows of these parts are those of the suites.
PLAIN = ('tests', 'gradients', 'stability', 'graphs')


def status(units, due):
    """What became of a part, in a few words.

    Args:
        units (dict): Its units that were begun.
        due (int): How many it has, 0 where nobody knows.
    """
    done = sum(unit['status'] == 'done' for unit in units.values())
    if due and done == due:
        return 'done'
    if not units:
        return 'not begun'
    counts = {}
    for unit in units.values():
        counts[unit['status']] = counts.get(unit['status'], 0) + 1
    rest = due - len(units)
    words = [f'{count} {name}' for name, count in counts.items()]
    return ', '.join(words + [f'{rest} not begun'] * (rest > 0))


def rows_of(units):
    return [row for unit in units.values() for row in unit.get('rows', ())]


def problems(units):
    """What is wrong, by unit."""
    found = {
        key: unit['error'] for key, unit in units.items() if unit['status'] == 'failed'
    }
    for key, unit in units.items():
        for row in unit.get('rows', ()):
            if row.get('problem'):
                found[key] = row['problem']
    return found


def summary(record, totals):
    """The table of all parts.

    Args:
        record (Record): The results.
        totals (dict[str, int]): How many units each part has.
    """
    lines = []
    for name in totals:
        units = record.data['parts'].get(name, {})
        seconds = sum(unit.get('seconds', 0) for unit in units.values())
        rows = rows_of(units)
        lines.append(
            [
                name,
                status(units, totals[name]),
                f'{sum(u["status"] == "done" for u in units.values())}/{totals[name]}',
                f'{seconds:.0f}',
                str(len(problems(units))),
                PARTS[name].headline(rows) if rows else '-',
            ]
        )
    titles = ['part', 'status', 'units', 'seconds', 'problems', 'result']
    return markdown(titles, lines)


def describe(record, totals):
    """All results as one page."""
    runs = record.data['runs']
    text = ['# One GPU run\n']
    if record.data['small']:
        text.append('Small inputs: the figures mean nothing.\n')
    for i, run in enumerate(runs):
        versions = ', '.join(f'{k} {v}' for k, v in run['versions'].items())
        text.append(
            f'Run {i + 1}: {run["machine"]}; {versions}; commit '
            f'{run["commit"] or "unknown"}.\n'
        )
    text += [summary(record, totals), f'\n{METHOD.format(rounds=ROUNDS)}\n']
    for name in totals:
        units = record.data['parts'].get(name, {})
        if not units:
            continue
        text.append(f'\n## {name}: {PARTS[name].about}\n')
        rows = rows_of(units)
        if rows:
            text.append(plain_table(rows) if name in PLAIN else table(rows))
        others = [
            f'- {key}: {unit["status"]}: {unit.get("error")}'
            for key, unit in units.items()
            if unit.get('error')
        ]
        text += ['', *others] * bool(others)
    return '\n'.join(text) + '\n'


def plain_table(rows):
    """Rows with the columns that they have."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    lines = [[cell(key, row.get(key)) for key in keys] for row in rows]
    return markdown([TITLES.get(key, key.replace('_', ' ')) for key in keys], lines)


def cell(key, value):
    if value is None:
        return '-'
    if key in TEXTS:
        return TEXTS[key](value)
    return f'{value:.3g}' if isinstance(value, float) else str(value)
