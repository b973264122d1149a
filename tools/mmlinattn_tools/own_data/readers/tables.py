"""Tables of photos with a box, or a class, in each row."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from ..records import Annotation, Object
from ..texts import as_numbers, read_text
from .base import AnnotationFile, ClassNames, bounding_box, make_object, stated_size

CLASS_COLUMNS = {
    'class',
    'label',
    'category',
    'classname',
    'labelname',
    'species',
    'target',
}
BOX_COLUMNS = (('xmin', 'ymin', 'xmax', 'ymax'), ('x1', 'y1', 'x2', 'y2'))
SPLIT_COLUMNS = ('split', 'subset')
PHOTO = 'photo'  # the column of the photos' names
SEPARATORS = '\t;|, '

Row = dict[str, str]


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
        """The column that has the classes, beside those that are known.

        Raises:
            ValueError: If it is not clear.
        """
        known = (PHOTO, *SPLIT_COLUMNS, *known)
        others = [name for name in self.rows[0] if name not in known]
        wanted = {plain_column(column)} if column else CLASS_COLUMNS
        fitting = [name for name in others if name in wanted]
        fitting = fitting or ([] if column else others)
        if len(fitting) != 1:
            raise ValueError(
                f'{self.path}: which column has the class? --column names one of '
                f'{", ".join(others)}'
            )
        return fitting[0]


def plain_column(name: str) -> str:
    """The name of a column in the form that is compared."""
    return re.sub('[ _]', '', name.lower())


def read_table(path: Path, is_photo: Callable[[str], bool]) -> Optional[Table]:
    """The table of a file; a column without a name has its number. None if the file
    names no photos, or nothing else.

    Raises:
        ValueError: If rows have other columns than the header.
    """
    rows = _cells(read_text(path))
    photo = _photo_column(rows, is_photo)
    if photo is None:
        return None
    header = [str(i) for i in range(1, len(rows[0]) + 1)]
    if not is_photo(rows[0][photo]):
        header, *rows = rows
    elif len(header) == 6 and _are_boxes(rows):
        header[1:] = [*BOX_COLUMNS[0], 'class']
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
    """The column that names most photos."""
    counts = Counter[int]()
    for row in rows:
        counts.update(i for i, cell in enumerate(row) if is_photo(cell))
    return counts.most_common(1)[0][0] if counts else None


def _cells(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.strip()]
    separators = [
        separator
        for separator in SEPARATORS
        if all(separator in line for line in lines)
    ]
    if not lines or not separators:
        return []
    rows = csv.reader(lines, delimiter=separators[0])
    return [[cell.strip() for cell in row] for row in rows]


def _are_boxes(rows: Iterable[list[str]]) -> bool:
    """Whether the columns 2 to 5 are numbers."""
    return all(map(as_numbers, zip(*(row[1:5] for row in rows))))


def read_boxes(table: Table, classes: ClassNames) -> list[Annotation]:
    """Photos of a table with a box in each row; none of another table.

    Raises:
        ValueError: If it is not clear which column has the class, or a corner is no
            number.
    """
    kinds = [kind for kind in BOX_COLUMNS if table.rows[0].keys() >= set(kind)]
    if not kinds:
        return []
    corners = kinds[0]
    column = table.class_column(classes.column, (*corners, 'width', 'height'))
    sizes: dict[str, Optional[tuple[float, float]]] = {}
    objects: dict[str, list[Object]] = {}
    for row in table.rows:
        sizes.setdefault(row[PHOTO], stated_size(row.get('width'), row.get('height')))
        places = [row[key] for key in corners]
        boxes = objects.setdefault(row[PHOTO], [])
        if any(places):  # a photo without objects has an empty row
            boxes.append(make_object(row[column], bounding_box(places)))
    photos = objects.items()
    return [Annotation(name, sizes[name], tuple(boxes)) for name, boxes in photos]


def read_classes(table: Table, column: Optional[str]) -> list[tuple[Row, str]]:
    """Rows of a table and their classes; rows without one are left out.

    Raises:
        ValueError: If it is not clear which column has the class, or a photo has
            several classes.
    """
    ones = _one_hot_columns(table)
    if ones and not column:
        pairs = [(row, _class_of_ones(table, row, ones)) for row in table.rows]
    else:
        key = table.class_column(column)
        pairs = [(row, ' '.join(row[key].split())) for row in table.rows]
    return [(row, name) for row, name in pairs if name]


def _one_hot_columns(table: Table) -> list[str]:
    """Columns of 0 and 1, one for each class, as Roboflow's _classes.csv has them."""
    columns = [
        column for column in table.rows[0] if column not in (PHOTO, *SPLIT_COLUMNS)
    ]
    if CLASS_COLUMNS.intersection(columns):
        return []
    values = set[str]()
    for row in table.rows:
        values.update(row[column] for column in columns)
    return columns if len(columns) > 1 and values == {'0', '1'} else []


def _class_of_ones(table: Table, row: Row, columns: Iterable[str]) -> str:
    names = [table.names[column] for column in columns if row[column] == '1']
    if len(names) > 1:
        raise ValueError(
            f'{table.path}: {row[PHOTO]} has several classes, {", ".join(names)}: a '
            'classifier learns one of a photo'
        )
    return names[0] if names else ''


def recognizes(file: AnnotationFile) -> bool:
    """Whether it is a table."""
    return file.ending in ('.csv', '.tsv')
