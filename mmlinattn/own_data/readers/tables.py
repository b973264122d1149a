"""Tables of photos with a box, or a class, in each row."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from ..texts import as_numbers, read_rows, read_text
from .base import AnnotationFile

CLASS_COLUMNS = {
    'class',
    'label',
    'category',
    'classname',
    'labelname',
    'species',
    'target',
}
NUMBER_COLUMNS = {'classid', 'labelid', 'categoryid'}  # without one of these names
CORNERS = ('xmin', 'ymin', 'xmax', 'ymax')
YES, NO = (1.0,), (0.0, -1.0)
FLAGS = dict(true=1.0, yes=1.0, false=0.0, no=0.0, nan=0.0) | {'': 0.0}
SPLIT_COLUMNS = ('split', 'subset')
PHOTO = 'photo'  # the column of the photos' names
FEW = 2  # rows, which may all have classes of their own
SEPARATORS = '\t;|, '

Row = dict[str, str]


class NoClassColumn(ValueError):
    """It is not clear which column of a table has the class."""


@dataclass(frozen=True)
class Table:
    """A table of photos.

    Args:
        path (Path): Its file.
        rows (list[dict[str, str]]): Values by the plain names of columns, the photo's
            name under 'photo'.
        names (dict[str, str]): Names of columns as they are written, by plain ones.
    """

    path: Path
    rows: list[Row]
    names: dict[str, str]

    def class_column(self, column: Optional[str], known: Sequence[str] = ()) -> str:
        """Return the column that has the classes, beside those that are known: by its
        name, or because there is no other.

        Raises:
            NoClassColumn: If it is not clear.
        """
        known = (PHOTO, *SPLIT_COLUMNS, *known)
        others = [name for name in self.rows[0] if name not in known]
        fitting = self.named_columns(column, others)
        fitting = fitting or ([] if column else others)
        if len(fitting) != 1:
            raise NoClassColumn(
                f'{self.path}: which column has the class? --column names one of '
                f'{", ".join(self.names[name] for name in others)}'
            )
        return fitting[0]

    def named_columns(self, column: Optional[str], others: Sequence[str]) -> list[str]:
        """Return the columns whose names say that they have classes."""
        choices = [CLASS_COLUMNS, NUMBER_COLUMNS]
        if column:
            choices = [{plain_column(column)}]
        present = ([name for name in others if name in wanted] for wanted in choices)
        return next(filter(None, present), [])


def plain_column(name: str) -> str:
    """Return the name of a column in the form that is compared."""
    return re.sub(r'[ _.\-]', '', name.lower())


def read_table(path: Path, is_photo: Callable[[str], bool]) -> Optional[Table]:
    """Return the table of a file; a column without a name has its number. None if the
    file names no photos, or nothing else.

    Raises:
        ValueError: If rows have other columns than the header.
    """
    try:
        rows = _cells(read_text(path))
    except ValueError as error:
        raise ValueError(f'{path}: {error}') from error
    photo = _photo_column(rows, is_photo)
    if photo is None:
        return None
    header = [str(i) for i in range(1, len(rows[0]) + 1)]
    if not is_photo(rows[0][photo]):
        header, *rows = rows
    elif len(header) == 6 and _are_boxes(rows):
        header[1:] = [*CORNERS, 'class']
    plain = [plain_column(name) for name in header]
    plain[photo] = PHOTO
    if len(set(plain)) < len(plain) or any(len(row) != len(plain) for row in rows):
        raise ValueError(f'{path}: rows or columns do not fit its header')
    if not rows or len(plain) < 2:
        return None
    return Table(
        path, [dict(zip(plain, row)) for row in rows], dict(zip(plain, header))
    )


def _photo_column(
    rows: Iterable[list[str]], is_photo: Callable[[str], bool]
) -> Optional[int]:
    """Return the column that names most photos; of several, the one with the most
    different names, because photos may be called by numbers."""
    cells: dict[int, list[str]] = defaultdict(list)
    for row in rows:
        for i, cell in enumerate(row):
            if is_photo(cell):
                cells[i].append(cell)
    return max(cells, key=lambda i: (len(cells[i]), len({*cells[i]})), default=None)


def _cells(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.strip()]
    separators = [
        separator
        for separator in SEPARATORS
        if all(separator in line for line in lines)
    ]
    if not lines or not separators:
        return []
    return read_rows(lines, separators[0])


def _are_boxes(rows: Iterable[list[str]]) -> bool:
    """Return whether the columns 2 to 5 are numbers."""
    return all(map(as_numbers, zip(*(row[1:5] for row in rows))))


def read_classes(
    table: Table, column: Optional[str]
) -> tuple[list[tuple[Row, str]], bool]:
    """Return rows of a table and their classes, and whether names of columns say where
    these are; rows without a class are ignored.

    Raises:
        ValueError: If it is not clear which column has the class, or a photo has
            several classes.
        NoClassColumn: If the only column has another value for each of many photos.
    """
    ones = one_hot_columns(table)
    if ones and not column:
        pairs = [(row, _class_of_ones(table, row, ones)) for row in table.rows]
        is_named = True
    else:
        key = table.class_column(column)
        refuse_one_of_ones(table, key, ones)
        pairs = [(row, ' '.join(row[key].split())) for row in table.rows]
        is_named = bool(table.named_columns(column, [key]))
        if not is_named and len({name for _, name in pairs}) == len(pairs) > FEW:
            raise NoClassColumn(
                f'{table.path}: which column has the class? {table.names[key]} has '
                'another value for each photo'
            )
    return [(row, name) for row, name in pairs if name], is_named


def one_hot_columns(table: Table) -> list[str]:
    """Return columns of yes and no, one for each class; beside columns of something
    else, each row has one yes."""
    columns = [
        column for column in table.rows[0] if column not in (PHOTO, *SPLIT_COLUMNS)
    ]
    if (CLASS_COLUMNS | NUMBER_COLUMNS).intersection(columns):
        return []
    ones = [
        column
        for column in columns
        if all(_flag(row[column]) in YES + NO for row in table.rows)
    ]
    has_yes = any(_flag(row[column]) in YES for row in table.rows for column in ones)
    if len(ones) < 2 or not has_yes:
        return []
    return ones if len(ones) == len(columns) or _have_one(table, ones) else []


def _flag(cell: str) -> Optional[float]:
    """Return the number of a cell that says yes or no."""
    numbers = as_numbers([cell])
    return numbers[0] if numbers else FLAGS.get(cell.lower())


def _have_one(table: Table, columns: Sequence[str]) -> bool:
    """Return whether each row has one yes."""
    counts = (
        sum(_flag(row[column]) in YES for column in columns) for row in table.rows
    )
    return all(count == 1 for count in counts)


def refuse_one_of_ones(table: Table, column: str, ones: Sequence[str]) -> None:
    """Check that a column is not one of several of which each photo has one.

    Raises:
        ValueError: If it is.
    """
    if column in ones and _have_one(table, ones):
        names = ', '.join(table.names[name] for name in ones)
        raise ValueError(
            f'--column {table.names[column]}: its values are yes and no, and the '
            f'classes are the columns {names}; leave --column out'
        )


def _class_of_ones(table: Table, row: Row, columns: Iterable[str]) -> str:
    names = [table.names[column] for column in columns if _flag(row[column]) in YES]
    if len(names) > 1:
        raise ValueError(
            f'{table.path}: {row[PHOTO]} has several classes, {", ".join(names)}: a '
            'classifier learns one of a photo'
        )
    return names[0] if names else ''


def recognizes(file: AnnotationFile) -> bool:
    """Return whether it is a table."""
    return file.ending in ('.csv', '.tsv')
