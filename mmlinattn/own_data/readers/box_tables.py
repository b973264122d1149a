"""Tables with a box in each row, in columns or in a cell."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

import numpy as np

from ..records import Annotation, Box, Object
from ..texts import as_numbers
from .base import ClassNames, bounding_box, make_object, stated_size
from .tables import PHOTO, SPLIT_COLUMNS, Row, Table

CORNERS, SIDES, CENTERS = 'corners', 'sides', 'centers'
# the columns of a box by plain names, and what its numbers are
FORMS = (
    (('xmin', 'ymin', 'xmax', 'ymax'), CORNERS),
    (('minx', 'miny', 'maxx', 'maxy'), CORNERS),
    (('x1', 'y1', 'x2', 'y2'), CORNERS),
    (('x0', 'y0', 'x1', 'y1'), CORNERS),
    (('left', 'top', 'right', 'bottom'), CORNERS),
    (('xtl', 'ytl', 'xbr', 'ybr'), CORNERS),
    (('roix1', 'roiy1', 'roix2', 'roiy2'), CORNERS),
    (('bboxx1', 'bboxy1', 'bboxx2', 'bboxy2'), CORNERS),
    (('bboxxmin', 'bboxymin', 'bboxxmax', 'bboxymax'), CORNERS),
    (('xcenter', 'ycenter', 'width', 'height'), CENTERS),
    (('xcenter', 'ycenter', 'w', 'h'), CENTERS),
    (('centerx', 'centery', 'width', 'height'), CENTERS),
    (('cx', 'cy', 'width', 'height'), CENTERS),
    (('cx', 'cy', 'w', 'h'), CENTERS),
    (('x', 'y', 'width', 'height'), SIDES),
    (('x', 'y', 'w', 'h'), SIDES),
    (('left', 'top', 'width', 'height'), SIDES),
    (('x1', 'y1', 'width', 'height'), SIDES),
    (('x1', 'y1', 'w', 'h'), SIDES),
    (('xmin', 'ymin', 'width', 'height'), SIDES),
    (('xmin', 'ymin', 'w', 'h'), SIDES),
    (('bboxx', 'bboxy', 'bboxwidth', 'bboxheight'), SIDES),
    (('bboxx', 'bboxy', 'bboxw', 'bboxh'), SIDES),
)
PHOTO_SIZES = (
    ('imagewidth', 'imageheight'),
    ('imgwidth', 'imgheight'),
    ('imagew', 'imageh'),
    ('imgw', 'imgh'),
    ('width', 'height'),
)
# columns that have no class
NO_CLASSES = ('area', 'confidence', 'id', 'imageid', 'annotationid', 'score', 'source')
UNNAMED = 'object'  # the class of a table that has boxes alone
NUMBER = re.compile(r'-?\d+\.?\d*(?:[eE][+-]?\d+)?')
KEY = re.compile(r'[\'"]?([A-Za-z_]\w*)[\'"]?\s*:')
ENOUGH = 8  # different boxes that tell corners from sides


@dataclass(frozen=True)
class Boxes:
    """The boxes of a table.

    Args:
        numbers (list[ndarray]): Of each row, (N, 4).
        kind (str): Corners, sides, or centers and sides.
        columns (list[str]): The columns that have them.
        note (str): A line on it, or ''.
    """

    numbers: Sequence[np.ndarray]
    kind: str
    columns: Sequence[str]
    note: str = ''

    @property
    def are_fractions(self) -> bool:
        """Whether numbers are parts of the sides of photos."""
        numbers = np.concatenate(self.numbers)
        return bool(numbers.size and 0 < numbers.max() <= 1 and (numbers % 1).any())

    def boxes(self, row: int) -> list[Box]:
        """Return the boxes (x, y, width, height) of a row."""
        boxes: list[Box] = []
        for first, second, third, fourth in self.numbers[row].tolist():
            if self.kind == CORNERS:
                boxes.append(bounding_box([first, second, third, fourth]))
            elif self.kind == SIDES:
                boxes.append((first, second, third, fourth))
            else:
                corner = first - third / 2, second - fourth / 2
                boxes.append((*corner, third, fourth))
        return boxes


def read_boxes(table: Table, classes: ClassNames) -> tuple[list[Annotation], str]:
    """Return photos of a table with boxes, and a line on them or ''; none of another
    table.

    Raises:
        ValueError: If it is not clear which column has the class, or a place is no
            number.
    """
    boxes = find_boxes(table)
    if boxes is None:
        return [], ''
    sizes = _size_columns(table, boxes)
    column = _class_column(table, classes.column, (*boxes.columns, *sizes))
    stated: dict[str, Optional[tuple[float, float]]] = {}
    objects: dict[str, list[Object]] = {}
    for i, row in enumerate(table.rows):
        size = stated_size(*(row.get(key) for key in sizes)) if sizes else None
        stated.setdefault(row[PHOTO], size)
        here = objects.setdefault(row[PHOTO], [])
        name = row[column] if column else UNNAMED
        here += [make_object(name, box) for box in boxes.boxes(i)]
    fractions = boxes.are_fractions
    annotations = [
        Annotation(
            name,
            None if fractions else stated[name],
            tuple(items),
            in_fractions=fractions,
        )
        for name, items in objects.items()
    ]
    return annotations, boxes.note and f'{table.path}: {boxes.note}'


def find_boxes(table: Table) -> Optional[Boxes]:
    """Return the boxes of a table's columns, or of the cells of one; None without any.

    Raises:
        ValueError: If a place is no number.
    """
    for columns, kind in FORMS:
        if table.rows[0].keys() >= set(columns):
            numbers = [_numbers_of(row, columns) for row in table.rows]
            boxes = Boxes(numbers, kind, columns)
            return _centers_instead(boxes) if columns[0] == 'x' else boxes
    for column in table.rows[0]:
        cells = [row[column] for row in table.rows]
        if column == PHOTO or not _may_have_boxes(column, cells):
            continue
        parsed = list(map(_numbers_in, cells))
        numbers = [cell for cell in parsed if cell is not None]
        if len(numbers) == len(parsed) and any(map(len, numbers)):
            return _boxes_of_cells(column, cells, numbers)
    return None


def _may_have_boxes(column: str, cells: Sequence[str]) -> bool:
    """Return whether a column is called after boxes, or its cells have four keys."""
    return 'box' in column or any(len(KEY.findall(cell)) > 3 for cell in cells)


def _numbers_of(row: Row, columns: Sequence[str]) -> np.ndarray:
    """Return the box of a row, (1, 4), or none of an empty one, (0, 4)."""
    places = [row[key] for key in columns]
    if not any(places):  # a photo without objects
        return np.zeros((0, 4))
    numbers = as_numbers(places)
    if numbers is None:
        raise ValueError(f'a box of {row[PHOTO]} is no number: {", ".join(places)}')
    return np.array([numbers])


def _centers_instead(boxes: Boxes) -> Boxes:
    """Return boxes whose x and y are centers if corners do not fit: parts of a photo's
    sides that would end beyond it."""
    numbers = np.concatenate(boxes.numbers)
    if not boxes.are_fractions or (numbers[:, :2] + numbers[:, 2:]).max() <= 1:
        return boxes
    return Boxes(boxes.numbers, CENTERS, boxes.columns)


def _numbers_in(cell: str) -> Optional[np.ndarray]:
    """Return the boxes in a cell, (N, 4); None if it has something else."""
    keys = KEY.findall(cell)
    plain = KEY.sub('', cell)
    if re.search(r'[^\d\s,;|:.eE+\-\[\](){}\'"]', re.sub('(?i)nan|none', '', plain)):
        return None
    numbers = as_numbers(NUMBER.findall(plain)) or []
    if len(numbers) % 4:
        return None
    boxes = np.reshape(numbers, (-1, 4))
    if keys and len(keys) == len(numbers):
        order = _order_of(keys[:4])
        return None if order is None else boxes[:, order]
    return boxes


def _order_of(keys: Sequence[str]) -> Optional[list[int]]:
    """Return the places of a box's numbers among keys."""
    plain = [key.lower() for key in keys]
    for names, _ in FORMS:
        if sorted(names) == sorted(plain):
            return [plain.index(name) for name in names]
    return None


def _boxes_of_cells(
    column: str, cells: Sequence[str], numbers: Sequence[np.ndarray]
) -> Boxes:
    """Return boxes of which no names of columns say whether they have corners or
    sides."""
    unique = np.unique(np.concatenate(numbers), axis=0)
    may_be_corners = (unique[:, 2:] > unique[:, :2]).all()
    keys = sorted(key.lower() for key in KEY.findall(max(cells, key=len))[:4])
    kinds = [kind for names, kind in FORMS if sorted(names) == keys]
    if kinds:
        kind = kinds[0]
    elif 'xyxy' in column or 'corner' in column or column == 'boxesstring':
        kind = CORNERS
    elif 'xywh' in column or not may_be_corners or len(unique) < ENOUGH:
        kind = SIDES
    else:
        kind = CORNERS
    words = 'x1, y1, x2, y2' if kind == CORNERS else 'x, y, width, height'
    return Boxes(numbers, kind, [column], f'boxes are read as {words}')


def _size_columns(table: Table, boxes: Boxes) -> tuple[str, ...]:
    """Return the columns of photos' widths and heights, if there are any."""
    for columns in PHOTO_SIZES:
        is_free = not set(columns) & set(boxes.columns)
        if is_free and table.rows[0].keys() >= set(columns):
            return columns
    return ()


def _class_column(
    table: Table, column: Optional[str], known: Sequence[str]
) -> Optional[str]:
    """Return the column of classes; None for a table that has boxes alone.

    Raises:
        ValueError: If it is not clear.
    """
    known = (*known, *NO_CLASSES)
    others = table.rows[0].keys() - {PHOTO, *SPLIT_COLUMNS, *known}
    if not others and not column:
        return None
    return table.class_column(column, known)
