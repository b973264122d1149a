"""Compare the numbers of pages with the files that they are taken from.

docs/values.yml lists, by page, the words around numbers, and their sources:

    README.md:
    - words: takes {} to {} of the time
      from: range benchmarks/zoo_cpu.json rows variant!=windows shape=1×3×224×224 ratio

Each `{}` is a number. `from` is a source, or a list of sources, for a row of a table:

    [-]STATISTIC [%] PLACE [- PLACE | / PLACE]

A PLACE is a JSON or YAML file in docs/ (../ leaves it) and a path in it, whose steps
are keys (KEY;KEY for several), indices, `*` for all entries, or KEY=VALUE for the
entries of a list with this value (or one of VALUE;VALUE; KEY!=VALUE for the others). A
second place without a file replaces the last steps of the first, and `numbers 1 2` are
these. Differences and quotients are those of values whose `*` have the same keys.

STATISTIC is `values`, `range` (least and largest), `mean`, `interval` (mean and half
the width of its 90 % interval by Student's t), or `exponent`, the power of the second
place with which the first grows, by their first and last values. `%` multiplies by 100,
`-` turns signs. Numbers are rounded as they are printed.

The words must be on the page once; `below: WORDS` searches behind these words. Numbers
without a file have `no_file: WHY` in place of `from`, and stand in the words.
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
VALUES = DOCS / 'values.yml'
NUMBER = (
    r'(?<![\w.,])(?<!\w[-+])(?P<number>[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e-?\d+)?)'
    r'(?![\w-]|[.,]\d)(?P<percent> %)?'
)
PLACEHOLDER = '{}'
# comments, code, targets of links, addresses, versions, and what is generated
NO_PROSE = re.compile(
    r'<!-- (?:attentions|claims|models): .*?<!-- end of \w+ -->|<!--.*?-->'
    r'|^```.*?^```$|`[^`\n]*`|(?<=\])\([^)\s]*\)|https?://\S+'
    r'|(?:arXiv|Python|torch) [\d.]+(?: - [\d.]+)?',
    re.S | re.M,
)
# Student's t, two-sided 90 %, by degrees of freedom
STUDENT = (math.nan, 6.314, 2.920, 2.353, 2.132, 2.015)
Values = dict[tuple[str, ...], float]


@lru_cache
def read(path: str) -> Any:
    """Return the contents of a JSON or YAML file."""
    text = (DOCS / path).read_text('utf-8')
    return json.loads(text) if path.endswith('.json') else yaml.safe_load(text)


def take(tree: Any, step: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what a step of a path leads to, each with the keys of several entries."""
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
    """Return whether a dictionary has what a step names."""
    return step == '*' or all(name in tree for name in step.split(';'))


def as_named(value: Any) -> str:
    """Return a value as a path names it, such as 1×3×224×224."""
    return '×'.join(map(str, value)) if isinstance(value, list) else str(value)


def look_up(words: list[str]) -> Values:
    """Return the numbers at a place, by the keys of its `*`."""
    file, *steps = words
    if file == 'numbers':
        return {(str(i),): float(step) for i, step in enumerate(steps)}
    entries: list[tuple[tuple[str, ...], Any]] = [((), read(file))]
    for step in steps:
        if len(entries) > 1:  # not every seed has been tested in every way
            entries = [
                (k, x) for k, x in entries if not isinstance(x, dict) or has(x, step)
            ]
        entries = [(k + j, x) for k, tree in entries for j, x in take(tree, step)]
    if not entries:
        raise LookupError(f'nothing at {" ".join(words)}')
    return {key: float(x) for key, x in entries}


def combine(first: Values, sign: str, second: Values) -> Values:
    """Return differences or quotients, of equal keys where both have several values."""
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
    """Return the mean and half the width of the 90 % interval."""
    half = STUDENT[len(values) - 1] * stdev(values) / math.sqrt(len(values))
    return [mean(values), half]


STATISTICS: dict[str, Callable[[list[float]], list[float]]] = {
    'values': lambda values: values,
    'range': lambda values: [min(values), max(values)],
    'mean': lambda values: [mean(values)],
    'interval': interval,
}


def exponent(large: Values, small: Values) -> list[float]:
    """Return the power of the second values with which the first ones grow."""
    growth, base = (
        math.log(list(x.values())[-1] / next(iter(x.values()))) for x in (large, small)
    )
    return [growth / base]


def evaluate(text: str) -> list[float]:
    """Return the numbers of a source.

    Args:
        text: Its statistic and places, as above.

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
    values = look_up(place)
    if statistic == 'exponent':
        return exponent(values, look_up(other))
    if other:
        values = combine(values, words[at], look_up(other))
    numbers = STATISTICS[statistic](list(values.values()))
    if statistic == 'interval':
        return [sign * numbers[0], abs(sign) * numbers[1]]
    numbers = [sign * x for x in numbers]
    return sorted(numbers) if statistic == 'range' else numbers


def is_rounded(text: str, value: float) -> bool:
    """Return whether a printed number is a value, rounded; whole numbers to two
    digits."""
    digits, _, power = text.replace(',', '').partition('e')
    whole, _, decimals = digits.lstrip('+-').partition('.')
    place = -len(decimals)
    if not decimals and len(whole) > 2:
        place = min(len(whole) - len(whole.rstrip('0')), len(whole) - 2)
    unit = 10.0 ** (place + int(power or 0))
    return abs(float(text.replace(',', '')) - value) <= unit * (0.5 + 1e-6)


def pattern_of(words: str) -> re.Pattern[str]:
    """Compile words to a pattern with a group for each placeholder."""
    number = re.sub(r'\?P<\w+>', '', NUMBER)
    parts = (
        r'\s+'.join(map(re.escape, re.split(r'\s+', x)))
        for x in words.split(PLACEHOLDER)
    )
    return re.compile(number.join(parts))


def find_words(page: str, entry: dict[str, Any]) -> tuple[Any, str]:
    """Return the match of an entry's words on a page, and why there is none."""
    start = 0
    if below := entry.get('below'):
        place = pattern_of(below).search(page)
        if place is None:
            return None, f'not on the page: {below!r}'
        start = place.end()
    matches = [*pattern_of(entry['words']).finditer(page, start)]
    if 'below' in entry:
        matches = matches[:1]
    if len(matches) != 1:
        return None, f'on the page {len(matches)} times: {entry["words"]!r}'
    return matches[0], ''


def check_entry(
    page: str, entry: dict[str, Any]
) -> tuple[list[tuple[int, int]], list[str]]:
    """Return the spans of a page that an entry covers, and what is wrong with them."""
    match, fault = find_words(page, entry)
    if fault:
        return [], [fault]
    if 'no_file' in entry:
        return [match.span()], []
    sources = entry['from']
    values, faults = [], []
    for source in [sources] if isinstance(sources, str) else sources:
        of_source, fault = try_evaluate(source)
        values += of_source
        faults += [fault] * bool(fault)
    printed = match.groups()[::2]
    fits = len(printed) == len(values) and all(map(is_rounded, printed, values))
    if not faults and not fits:
        shown = ', '.join(f'{x:.5g}' for x in values)
        faults.append(f'{[*printed]}, not {shown}: {entry["words"]}')
    return [match.span(i) for i in range(1, match.re.groups, 2)], faults


def faults_of(
    page: str, entries: list[dict[str, Any]], every: bool = False
) -> list[str]:
    """Return a line for each fault in the numbers of a page.

    Args:
        page: Markdown.
        entries: Of the page, as docs/values.yml has them.
        every: Whether decimals and percentages that no entry covers are faults, too.
    """
    covered, faults = [], []
    for entry in entries:
        spans, of_entry = check_entry(page, entry)
        covered += spans
        faults += of_entry
    if every:
        prose = NO_PROSE.sub(lambda x: ' ' * len(x[0]), page)
        for token in re.finditer(NUMBER, prose):
            is_covered = any(a <= token.start('number') < b for a, b in covered)
            if not is_covered and (token['percent'] or '.' in token['number']):
                before = prose[max(0, token.start() - 60) : token.end()]
                faults.append(f'no entry: {before!r}')
    return faults


def try_evaluate(words: str) -> tuple[list[float], str]:
    """Return the numbers of a comment, and why there are none."""
    try:
        return evaluate(words), ''
    except (LookupError, OSError, ValueError, TypeError, ZeroDivisionError) as error:
        return [math.nan], f'{type(error).__name__} {error}: {words}'


def main() -> None:
    """Print the faults of the pages that are named, or of all that have entries."""
    entries = yaml.safe_load(VALUES.read_text('utf-8'))
    for name in sys.argv[1:] or entries:
        page = (DOCS.parent / name).read_text('utf-8')
        for fault in faults_of(page, entries.get(name, [])):
            print(f'{name}: {fault}')


if __name__ == '__main__':
    main()
