"""What the numbers behind the class mean in lines of YOLO's files.

A box has 4 numbers. A polygon has 6 or more, an even number. Keypoints, in places of 2
or 3 numbers, stand behind a box. A model's predictions end with a confidence and, in
videos, the id of a track. No file says which it is: all lines of a data set together
do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

BOX = 4
SCORED, TRACKED = BOX + 1, BOX + 2
TRIANGLE = 6
QUADRILATERAL = 8
SEVERAL = 4  # lines, of which not all end at an edge
COMPARED = 500  # lines whose polygons are looked at
MOST = 0.9  # of lines, of which a few may be odd
EDGE = 0.02  # sides of the photo by which a box may reach beyond it
BESIDE = 0.05  # sides of the box by which a keypoint may lie beside it
VISIBILITIES = (0, 1, 2)

PREDICTED = 'labels have confidences, as predictions of a model do: all are learned'
OUTLINES = (
    'lines of {} numbers are taken for outlines: if they have keypoints, a data.yaml '
    'with kpt_shape says so'
)
KEYPOINTS = 'ignored the keypoints of labels, their boxes are learned'

Row = Sequence[float]


@dataclass(frozen=True)
class Layout:
    """What the numbers of lines are.

    Args:
        has_polygons (bool): Lines of six and more numbers are polygons, not boxes.
        tail (int): Numbers at the end of a polygon that are no corner.
        note (str): A line on it, or ''.
    """

    has_polygons: bool = True
    tail: int = 0
    note: str = ''


KEYPOINT_LAYOUT = Layout(has_polygons=False)


def find_layout(rows: Sequence[Row]) -> Layout:
    """Return the layout of all lines of a data set, by the numbers behind their
    classes.

    Raises:
        ValueError: If no layout fits all lines.
    """
    long = [row for row in rows if len(row) > BOX]
    if not long:
        return Layout()
    if all(map(_is_scored_box, long)):
        return Layout(has_polygons=False, note=PREDICTED)
    long = [row for row in long if len(row) > SCORED]
    if len(set(map(len, long))) == 1:
        return _layout_of_equal(np.array(long))
    return _polygons(long)


def _is_scored_box(row: Row) -> bool:
    """Return whether a confidence, and the id of a track, may stand behind a box."""
    if len(row) not in (SCORED, TRACKED) or not 0 <= row[BOX] <= 1:
        return False
    return len(row) == SCORED or (row[-1] >= 0 and row[-1] % 1 == 0)


def _polygons(rows: Sequence[Row]) -> Layout:
    """Return the layout of polygons with different numbers of corners.

    Raises:
        ValueError: If some lines have an even and others an odd number.
    """
    odd = sum(len(row) % 2 for row in rows)
    if 0 < odd < len(rows):
        lengths = sorted({len(row) + 1 for row in rows})
        raise _unclear(' and '.join(map(str, [lengths[0], lengths[-1]])))
    tail = 1 if odd else 2 if _have_tracks(rows) else 0
    return Layout(tail=tail, note=PREDICTED if tail else '')


def _have_tracks(rows: Sequence[Row]) -> bool:
    """Return whether the last number is the id of a track: places are no whole numbers,
    but for some at an edge."""
    if not all(row[-1] % 1 == 0 and 0 <= row[-2] <= 1 for row in rows):
        return False
    return len(rows) >= SEVERAL or any(row[-1] > 1 for row in rows)


def _layout_of_equal(rows: np.ndarray) -> Layout:
    """Return the layout of lines (N, n) with the same number of numbers: boxes with
    keypoints, or polygons.

    Raises:
        ValueError: If they are neither.
    """
    length = rows.shape[1]
    if _have_visibilities(rows):
        return Layout(has_polygons=False, note=KEYPOINTS)
    layout = _polygons(rows.tolist())
    corners = rows[:COMPARED, : length - layout.tail]
    share = np.mean(list(map(_is_polygon, corners)))
    if not _have_keypoints(rows):
        is_long = length > QUADRILATERAL
        if (is_long and share < 0.5) or (layout.tail and length <= TRIANGLE + 1):
            raise _unclear(str(length + 1))
        return layout
    if share < MOST:
        return Layout(has_polygons=False, note=KEYPOINTS)
    if all(map(_is_parallelogram, corners)):
        return layout
    return Layout(tail=layout.tail, note=OUTLINES.format(length + 1))


def _unclear(lengths: str) -> ValueError:
    return ValueError(
        f'lines of labels have {lengths} numbers: a box has 5, with a confidence 6, '
        'with the id of a track 7; an outline has an odd number, with a confidence an '
        'even one; keypoints need a data.yaml with kpt_shape'
    )


def _have_visibilities(rows: np.ndarray) -> bool:
    """Return whether each third number behind boxes says whether a keypoint is
    visible."""
    if (rows.shape[1] - BOX) % 3:
        return False
    places = rows[:, BOX:].reshape(len(rows), -1, 3)
    if not np.isin(places[..., 2], VISIBILITIES).all():
        return False
    return _in_boxes(rows, places[..., :2], places[..., 2] > 0)


def _have_keypoints(rows: np.ndarray) -> bool:
    """Return whether all lines may be boxes with keypoints in them."""
    for tail in range(3):
        for step in (2, 3):
            numbers = rows[:, BOX : rows.shape[1] - tail]
            if not numbers.shape[1] or numbers.shape[1] % step:
                continue
            places = numbers.reshape(len(rows), -1, step)[..., :2]
            if _in_boxes(rows, places, places.any(-1)):
                return True
    return False


def _in_boxes(rows: np.ndarray, places: np.ndarray, counts: np.ndarray) -> bool:
    """Return whether places (N, k, 2) that count (N, k) are in the boxes of most lines,
    and these in the photo."""
    centers, sides = rows[:, :2], rows[:, 2:BOX]
    begins, ends = centers - sides / 2, centers + sides / 2
    in_photo = (begins >= -EDGE) & (ends <= 1 + EDGE) & (sides > 0)
    distances = np.abs(places - centers[:, None]) - sides[:, None] * (0.5 + BESIDE)
    beside = (distances > 0).any(-1) & counts
    return bool(np.mean(in_photo.all(1) & ~beside.any(1)) >= MOST)


def _is_polygon(numbers: np.ndarray) -> bool:
    """Return whether corners (2k,) are one after another on a border: the second is
    near the others, and no edges cross.

    The second one would be the width and height of a box.
    """
    corners = numbers.reshape(-1, 2)
    others = np.delete(corners, 1, axis=0)
    low, high = others.min(0), others.max(0)
    beside = np.maximum(np.maximum(low - corners[1], corners[1] - high), 0)
    if (beside > (high - low).max()).any():
        return False
    # quadrilaterals, as of plates and pages, have no corner inwards
    is_quadrilateral = len(numbers) == QUADRILATERAL
    if is_quadrilateral and not cv2.isContourConvex(corners.astype(np.float32)):
        return False
    return not _edges_cross(corners)


def _edges_cross(corners: np.ndarray) -> bool:
    """Return whether two edges of a polygon (k, 2) cross."""
    begins, ends = corners, np.roll(corners, -1, axis=0)
    sides = ends - begins

    def side_of(points: np.ndarray) -> np.ndarray:
        """On which side of each edge (k, 1) each point (1, k) lies."""
        steps = points[None] - begins[:, None]
        cross = sides[:, None, 0] * steps[..., 1] - sides[:, None, 1] * steps[..., 0]
        return np.sign(cross)

    apart = side_of(begins) * side_of(ends) < 0
    return bool((apart & apart.T).any())


def _is_parallelogram(numbers: np.ndarray) -> bool:
    """Return whether corners (2k,) are those of a rectangle, of any direction."""
    if len(numbers) != QUADRILATERAL:
        return False
    corners = numbers.reshape(-1, 2)
    center = np.abs(corners[0] + corners[2] - corners[1] - corners[3])
    return bool((center <= EDGE * np.ptp(corners, axis=0).max()).all())
