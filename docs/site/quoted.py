"""Compare the numbers of pages with the files that they are taken from.

A comment behind numbers says where they come from, invisible to a reader:

    takes 0.51 to 0.57<!-- = range benchmarks/backbones_cpu.json rows
    'variant=SOFT++-T, linear' shape=1×3×800×1344 ratio --> of the time

    <!-- = [-]STATISTIC [%] PLACE [- PLACE | / PLACE] -->

A PLACE is a JSON or YAML file in docs/ (../ leaves it) and a path in it, whose steps
are keys (KEY;KEY for several), indices, `*` for all entries, or KEY=VALUE for the
entries of a list with this value (or one of VALUE;VALUE; KEY!=VALUE for the others). A
second place without a file replaces the last steps of the first, and `numbers 1 2` are
these. Differences and quotients are those of values whose `*` have the same keys.

STATISTIC is `values`, `range` (least and largest), `mean`, `interval` (mean and half
the width of its 90 % interval by Student's t), or `exponent`, the power of the second
place with which the first grows, by their first and last values. `%` multiplies by 100,
`-` turns signs. As many numbers before the comment as the statistic has must be its
values, rounded as they are printed.

    <!-- no file: WHY -->

says of all other numbers before it in the paragraph that they come from no file.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from shlex import split
from statistics import mean, stdev
from typing import Any

import yaml

DOCS = Path(__file__).resolve().parents[1]
COMMENT = r'<!-- *(?P<kind>=|no\s+file:)(?P<words>.*?)-->'
NUMBER = (
    r'(?<![\w.,])(?<!\w[-+])(?P<number>[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e-?\d+)?)'
    r'(?![\w-]|[.,]\d)(?P<percent> %)?'
)
TOKEN = re.compile(f'{COMMENT}|{NUMBER}', re.S)
# other comments, code, targets of links, addresses, versions, and what is generated
NO_PROSE = re.compile(
    r'<!-- (?:attentions|models): .*?<!-- end of \w+ -->|<!-- (?!=|no\s+file:).*?-->'
    r'|^```.*?^```$|`[^`\n]*`|(?<=\])\([^)\s]*\)|https?://\S+'
    r'|(?:arXiv|Python|torch) [\d.]+(?: - [\d.]+)?',
    re.S | re.M,
)
# a comment at the beginning of a line ends its paragraph
BREAK = re.compile(r'^[^|\s].*\n *<!-- (?:=|no\s+file:)', re.M)
# Student's t, two-sided 90 %, by degrees of freedom
STUDENT = (math.nan, 6.314, 2.920, 2.353, 2.132, 2.015)
Found = dict[tuple[str, ...], float]


@lru_cache
def read(path: str) -> Any:
    """The contents of a JSON or YAML file."""
    text = (DOCS / path).read_text('utf-8')
    return json.loads(text) if path.endswith('.json') else yaml.safe_load(text)


def take(tree: Any, step: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What a step of a path leads to, each with the keys of several entries."""
    key, equal, texts = step.partition('=')
    if isinstance(tree, list) and equal:
        name, wanted = key.rstrip('!'), not key.endswith('!')
        values = texts.split(';')
        yield (), [x for x in tree if (as_named(x.get(name)) in values) == wanted]
    elif step == '*':
        pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
        yield from (((str(name),), entry) for name, entry in pairs)
    elif isinstance(tree, list) and step.lstrip('-').isdigit():
        yield (), tree[int(step)]
    elif isinstance(tree, list):
        for i, entry in enumerate(tree):
            yield from (((str(i), *keys), x) for keys, x in take(entry, step))
    elif ';' in step:
        yield from (((name,), tree[name]) for name in step.split(';'))
    else:
        yield (), tree[step]


def has(tree: dict[str, Any], step: str) -> bool:
    """Whether a dictionary has what a step names."""
    return step == '*' or all(name in tree for name in step.split(';'))


def as_named(value: Any) -> str:
    """A value as a path names it, such as 1×3×224×224."""
    return '×'.join(map(str, value)) if isinstance(value, list) else str(value)


def look_up(words: list[str]) -> Found:
    """The numbers at a place, by the keys of its `*`."""
    file, *steps = words
    if file == 'numbers':
        return {(str(i),): float(step) for i, step in enumerate(steps)}
    found: list[tuple[tuple[str, ...], Any]] = [((), read(file))]
    for step in steps:
        if len(found) > 1:  # not every seed has been tested in every way
            found = [
                (k, x) for k, x in found if not isinstance(x, dict) or has(x, step)
            ]
        found = [(k + j, x) for k, tree in found for j, x in take(tree, step)]
    if not found:
        raise LookupError(f'nothing at {" ".join(words)}')
    return {key: float(x) for key, x in found}


def combine(first: Found, sign: str, second: Found) -> Found:
    """Differences or quotients, of equal keys where both have several values."""
    if len(second) == 1 and len(first) > 1:
        second = dict.fromkeys(first, *second.values())
    if len(first) == len(second) == 1:
        second = dict(zip(first, second.values()))
    common = [key for key in first if key in second]
    if not common:
        raise LookupError('no common keys')
    return {
        k: first[k] - second[k] if sign == '-' else first[k] / second[k] for k in common
    }


def interval(values: list[float]) -> list[float]:
    """Mean and half the width of the 90 % interval."""
    half = STUDENT[len(values) - 1] * stdev(values) / math.sqrt(len(values))
    return [mean(values), half]


STATISTICS: dict[str, Callable[[list[float]], list[float]]] = {
    'values': lambda values: values,
    'range': lambda values: [min(values), max(values)],
    'mean': lambda values: [mean(values)],
    'interval': interval,
}


def exponent(large: Found, small: Found) -> list[float]:
    """The power of the second values with which the first ones grow."""
    growth, base = (
        math.log(list(x.values())[-1] / next(iter(x.values()))) for x in (large, small)
    )
    return [growth / base]


def evaluate(text: str) -> list[float]:
    """The numbers that a comment stands for.

    Args:
        text: What stands behind `=` in the comment.

    Raises:
        LookupError: If a file has no such place, or there is no such statistic.
    """
    statistic, *words = split(text)
    sign, statistic = (-1, statistic[1:]) if statistic[0] == '-' else (1, statistic)
    if words[0] == '%':
        sign, words = 100 * sign, words[1:]
    at = next((i for i, word in enumerate(words) if word in ('-', '/')), len(words))
    place, other = words[:at], words[at + 1 :]
    if other and not other[0].endswith(('.json', '.yml', 'numbers')):
        other = place[: -len(other)] + other
    found = look_up(place)
    if statistic == 'exponent':
        return exponent(found, look_up(other))
    if other:
        found = combine(found, words[at], look_up(other))
    values = STATISTICS[statistic](list(found.values()))
    if statistic == 'interval':
        return [sign * values[0], abs(sign) * values[1]]
    values = [sign * x for x in values]
    return sorted(values) if statistic == 'range' else values


def is_rounded(text: str, value: float) -> bool:
    """Whether a printed number is a value, rounded; whole numbers to two digits."""
    digits, _, power = text.replace(',', '').partition('e')
    whole, _, decimals = digits.lstrip('+-').partition('.')
    place = -len(decimals)
    if not decimals and len(whole) > 2:
        place = min(len(whole) - len(whole.rstrip('0')), len(whole) - 2)
    unit = 10.0 ** (place + int(power or 0))
    return abs(float(text.replace(',', '')) - value) <= unit * (0.5 + 1e-6)


def faults_of(page: str, every: bool = False) -> list[str]:
    """What is wrong with the numbers of a page.

    Args:
        page: Markdown.
        every: Whether decimals and percentages without a comment are faults, too.

    Returns:
        A line for each fault.
    """
    prose = NO_PROSE.sub(' ', page)
    faults = [f'a comment begins a line: {x[0]!r}' for x in BREAK.finditer(prose)]
    for paragraph in re.split(r'\n\s*\n', prose):
        free: list[re.Match[str]] = []  # numbers that no comment has named
        for token in TOKEN.finditer(paragraph):
            if token['number']:
                free.append(token)
            elif token['kind'] != '=':
                free.clear()
            else:
                values, fault = try_evaluate(token['words'])
                printed = [x['number'] for x in free[-len(values) :]]
                fits = all(map(is_rounded, printed, values))
                if fault or len(printed) < len(values) or not fits:
                    shown = ', '.join(f'{x:.5g}' for x in values)
                    faults.append(fault or f'{printed}, not {shown}: {token["words"]}')
                del free[-len(values) :]
        faults += [
            f'no comment: {paragraph[max(0, x.start() - 60) : x.end()]!r}'
            for x in free
            if every and (x['percent'] or '.' in x['number'])
        ]
    return faults


def try_evaluate(words: str) -> tuple[list[float], str]:
    """The numbers of a comment, and why there are none."""
    try:
        return evaluate(words), ''
    except (LookupError, OSError, ValueError, TypeError, ZeroDivisionError) as error:
        return [math.nan], f'{type(error).__name__} {error}: {words}'


def main() -> None:
    """Prints the faults of the pages that are named."""
    for path in sys.argv[1:]:
        for fault in faults_of(Path(path).read_text('utf-8'), every=True):
            print(f'{path}: {fault}')


if __name__ == '__main__':
    main()
