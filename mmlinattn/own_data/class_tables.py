"""Tables of the ids or colors that classes have in label maps."""

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import yaml

from .texts import read_text
from .words import IGNORED

INDEX = r'(?:^\s*\d+[\s,;]+(?=(?:\d+[\s,;]+){3}\D))?'  # before a color and a name
COLOR = re.compile(INDEX + r'(\d{1,3})[\s,;]+(\d{1,3})[\s,;]+(\d{1,3})(?!\d)')
TABLE_NAME = re.compile('colou?r|class|label|palette')
# names of files, in which a table of names by id may be
ID_TABLE = re.compile(
    'class|label|code|categor|legend|names|palette|colou?r|objectinfo|dataset_meta'
)
ID_FIRST = re.compile(
    r'["\']?(\d+)["\']?[\s:=,;|]+["\']?([^"\']*[^\W\d_][^"\']*)["\']?,?'
)
ID_LAST = re.compile(
    r'["\']?([^"\']*[^\W\d_][^"\']*?)["\']?[\s:=,;|]+["\']?(\d+)["\']?,?'
)
ID_COLUMNS = ('id', 'idx', 'index', 'value', 'code', 'pixelvalue', 'classid', 'labelid')
COLOR_COLUMNS = ({'r', 'g', 'b'}, {'red', 'green', 'blue'})
NAME_COLUMNS = ('name', 'class', 'label', 'category', 'classname', 'labelname')
KEYS = (
    'names',
    'classes',
    'labels',
    'categories',
    'id2label',
    'label2id',
    'class_names',
    'label_map',
)
LONGEST = 60  # letters of a name in a list
DATUMARO_NAME = 'dataset_meta.json'
ROBOFLOW_NAME, ROBOFLOW_HEADER = '_classes.csv', ['pixel value', 'class']


def read_colors(
    options: Optional[Sequence[str]], paths: Iterable[Path]
) -> dict[int, str]:
    """Return names of classes by color, as :func:`color_code` has it.

    Args:
        options (list[str], optional): Lines such as those of ``--colors``.
        paths (list[Path]): Files of which some may be a table, by their names.
    """
    tables = (_colors_of_file(path) for path in paths)
    for table in (parse_colors(options or ()), *tables):
        if len(table) > 1 and all(table.values()):
            return table
    return {}


def _colors_of_file(path: Path) -> dict[int, str]:
    if path.name == DATUMARO_NAME:
        return colors_of_datumaro(read_text(path))
    if path.suffix.lower() == '.json' or not TABLE_NAME.search(path.name.lower()):
        return {}
    return parse_colors(read_text(path).splitlines())


def colors_of_datumaro(text: str) -> dict[int, str]:
    """Return names by color of datumaro's file about a data set: ids and names, and
    colors in the same order."""
    with suppress(AttributeError, KeyError, RecursionError, TypeError, ValueError):
        content = json.loads(text)
        names, colors = content['label_map'].values(), content['segmentation_colors']
        return {color_code(*color): name for color, name in zip(colors, names)}
    return {}


def parse_colors(lines: Iterable[str]) -> dict[int, str]:
    """Return names by color, of lines that have three numbers and a name."""
    table = {}
    for line in lines:
        color = COLOR.search(line)
        if color:
            before, behind = line[: color.start()], line[color.end() :]
            names = [part.strip(' \t\'",;:=#') for part in (before, behind)]
            table[color_code(*map(int, color.groups()))] = names[0] or names[1]
    return table


def color_code(red: int, green: int, blue: int) -> int:
    """Return a color as one number."""
    return (red << 16) + (green << 8) + blue


def color_words(code: int) -> str:
    """Return a color in words."""
    return f'{code >> 16},{code >> 8 & 255},{code & 255}'


def read_id_names(paths: Iterable[Path]) -> dict[int, str]:
    """Return names of classes by id, of Roboflow's tables in each split; none without
    one.

    Raises:
        ValueError: If tables contradict each other.
    """
    names: dict[int, str] = {}
    for path in paths:
        table = _id_names(path) if path.name == ROBOFLOW_NAME else {}
        for number, name in table.items():
            if names.setdefault(number, name) != name:
                raise ValueError(
                    f'{path}: id {number} is {name}, and {names[number]} in another '
                    'table'
                )
    return names


def _id_names(path: Path) -> dict[int, str]:
    header, *rows = csv.reader(read_text(path).splitlines() or [''])
    if [cell.strip().lower() for cell in header] != ROBOFLOW_HEADER:
        return {}
    return {int(row[0]): row[1].strip() for row in rows if len(row) == 2}


@dataclass(frozen=True)
class NameTable:
    """Names of classes by id, of a file."""

    path: Path
    names: Mapping[int, str]


def read_name_tables(paths: Iterable[Path]) -> list[NameTable]:
    """Return the tables of names by id among files whose names say that they have
    classes."""
    tables = []
    for path in paths:
        if not ID_TABLE.search(path.stem.lower()) or path.name == ROBOFLOW_NAME:
            continue
        text = read_text(path)
        names: dict[int, str] = {}
        if path.suffix.lower() in ('.json', '.yaml', '.yml'):
            # of other content they are no tables
            with suppress(ValueError, yaml.YAMLError, RecursionError):
                is_json = path.suffix.lower() == '.json'
                names = names_of_value(
                    json.loads(text) if is_json else yaml.safe_load(text)
                )
        else:
            names = names_of_rows(text) or names_of_lines(text)
        if len(names) > 1:
            tables.append(NameTable(path, names))
    return tables


def names_of_value(value: Any) -> dict[int, str]:
    """Return names by id of a JSON value: a list of names, a dictionary of ids and
    names, in either order, or entries that have both; or one of these in another
    dictionary."""
    if isinstance(value, list):
        if all(isinstance(entry, dict) for entry in value):
            return _names_of_entries(value)
        return _listed(value) if all(isinstance(name, str) for name in value) else {}
    if not isinstance(value, dict):
        return {}
    pairs = [(str(key), entry) for key, entry in value.items()]
    if all(key.isdigit() and isinstance(name, str) for key, name in pairs):
        return {int(key): name.strip() for key, name in pairs}
    if all(type(number) is int for _, number in pairs):
        return {number: key.strip() for key, number in pairs}
    inner = (names_of_value(value[key]) for key in KEYS if key in value)
    return next(filter(None, inner), {})


def _names_of_entries(entries: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    names = {}
    for entry in entries:
        number, name = _cell(entry, ID_COLUMNS), _cell(entry, NAME_COLUMNS)
        if not str(number).strip().isdigit() or not isinstance(name, str):
            return {}
        names[int(number)] = name.strip()
    return names


def _cell(entry: Mapping[str, Any], columns: Iterable[str]) -> Any:
    """Return what an entry has in the first of these columns, '' without any."""
    cells = {_plain(key): cell for key, cell in entry.items()}
    return next((cells[column] for column in columns if column in cells), '')


def _plain(key: object) -> str:
    return re.sub('[ _]', '', str(key).lower())


def names_of_rows(text: str) -> dict[int, str]:
    """Return names by id of a table whose header names both columns."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return {}
    separator = next((mark for mark in '\t;,' if mark in lines[0]), ',')
    with suppress(csv.Error):
        rows = csv.DictReader(lines, delimiter=separator, restval='')
        entries = [{k: v for k, v in row.items() if k} for row in rows]
        return _names_of_entries(entries) or _names_of_colors(entries)
    return {}


def _names_of_colors(entries: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return the names of a table of colors, whose ids are the places in it."""
    names = []
    for entry in entries:
        name, columns = _cell(entry, NAME_COLUMNS), set(map(_plain, entry))
        if not name or not any(colors <= columns for colors in COLOR_COLUMNS):
            return {}
        names.append(name)
    return _listed(names)


def names_of_lines(text: str) -> dict[int, str]:
    """Return names by id of lines that have both, with or without a header, or of a
    list; none of lines with colors."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(map(COLOR.search, lines)):
        return {}
    for pattern, place in ((ID_FIRST, 0), (ID_LAST, 1)):
        matches = [pattern.fullmatch(line) for line in lines]
        matches = matches[1:] if matches and not matches[0] else matches  # a header
        if matches and all(matches):
            pairs = [(match[place + 1], match[2 - place]) for match in matches if match]
            return {int(number): name.strip() for number, name in pairs}
    is_list = all(len(line) < LONGEST for line in lines)
    has_numbers = any(line[0].isdigit() for line in lines)
    return _listed(lines) if is_list and not has_numbers else {}


def _listed(names: Sequence[str]) -> dict[int, str]:
    """Return ids of a list: from 0 on, or from -1 on where labelme's begins with what
    is ignored."""
    first = -1 if names and names[0] == IGNORED else 0
    pairs = enumerate((name.strip().rstrip(',') for name in names), first)
    return {number: name for number, name in pairs if number >= 0}
