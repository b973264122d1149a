"""Tables of the ids or colors that classes have in label maps."""

import csv
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Optional

from .texts import read_text

INDEX = r'(?:^\s*\d+[\s,;]+(?=(?:\d+[\s,;]+){3}\D))?'  # before a color and a name
COLOR = re.compile(INDEX + r'(\d{1,3})[\s,;]+(\d{1,3})[\s,;]+(\d{1,3})(?!\d)')
TABLE_NAME = re.compile('colou?r|class|label|palette')
ROBOFLOW_NAME, ROBOFLOW_HEADER = '_classes.csv', ['pixel value', 'class']


def read_colors(
    options: Optional[Sequence[str]], paths: Iterable[Path]
) -> dict[int, str]:
    """Names of classes by color, as :func:`color_code` has it.

    Args:
        options (list[str], optional): Lines such as those of ``--colors``.
        paths (list[Path]): Files of which some may be a table, by their names.
    """
    texts = (read_text(path) for path in paths if TABLE_NAME.search(path.name.lower()))
    for lines in (options or (), *(text.splitlines() for text in texts)):
        table = parse_colors(lines)
        if len(table) > 1 and all(table.values()):
            return table
    return {}


def parse_colors(lines: Iterable[str]) -> dict[int, str]:
    """Names by color, of lines that have three numbers and a name."""
    table = {}
    for line in lines:
        color = COLOR.search(line)
        if color:
            before, behind = line[: color.start()], line[color.end() :]
            names = [part.strip(' \t\'",;:=#') for part in (before, behind)]
            table[color_code(*map(int, color.groups()))] = names[0] or names[1]
    return table


def color_code(red: int, green: int, blue: int) -> int:
    """A color as one number."""
    return (red << 16) + (green << 8) + blue


def color_words(code: int) -> str:
    """A color in words."""
    return f'{code >> 16},{code >> 8 & 255},{code & 255}'


def read_id_names(paths: Iterable[Path]) -> dict[int, str]:
    """Names of classes by id, of Roboflow's tables in each split; none without one.

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
