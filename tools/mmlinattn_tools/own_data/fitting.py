"""Objects brought into the pixels of their photos."""

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np

from .records import Annotation, Object, Polygon, Size

TURNED = '{} photos are turned by their orientation in EXIF: so must be labels'
RESIZED = '{} photos have another size than in annotations, it resizes the labels'
REPEATED = 'left out {} objects that are there twice'
SMALL = 'left out {} boxes of less than a pixel in their photo'
OVER = '{} boxes reach far over the edge of their photo (corners instead of sides?)'
FAR = 1.1  # an edge of a box, in sides of the photo
SAME_SHAPE = 0.02  # difference of the factors of width and height


def fit(
    annotation: Annotation, size: Size, photo: object
) -> tuple[tuple[Object, ...], Counter[str]]:
    """Objects of a photo without those that the libraries would drop silently, and how
    many there are of each kind of note.

    Args:
        annotation (Annotation): What a file says of the photo.
        size (tuple[int]): The photo's width and height in pixels.
        photo (object): Its name in errors.

    Raises:
        ValueError: If the photo was turned or cut after it was labeled.
    """
    counts = Counter[str]()
    objects = list(annotation.objects)
    if annotation.in_fractions:
        objects = [item.scaled(size) for item in objects]
    elif annotation.size and annotation.size != size:
        counts[RESIZED] = 1
        factors = resize_factors(annotation, size, photo)
        objects = [item.scaled(factors) for item in objects]
    once = without_repeated(objects)
    counts[REPEATED] = len(objects) - len(once)
    inside = _insides(once, size)
    counts[SMALL] = len(once) - int(inside.sum())
    counts[OVER] = int((inside & _reach_over(once, size)).sum())
    return tuple(itertools.compress(once, inside)), counts


def resize_factors(
    annotation: Annotation, size: Size, photo: object
) -> tuple[float, float]:
    """Factors of width and height by which a photo was resized after it was labeled.

    Raises:
        ValueError: If it was turned or cut, or has masks in runs, which can't be
            resized.
    """
    width, height = annotation.size or size
    factors = size[0] / width, size[1] / height
    has_runs = any(item.outline and item.outline.runs for item in annotation.objects)
    if has_runs or not abs(factors[0] / factors[1] - 1) < SAME_SHAPE:
        raise ValueError(
            f'{photo} has {size[0]} x {size[1]} pixels, and its annotation says '
            f'{width:g} x {height:g}: the photo was turned or cut after it was '
            'labelled, or resized with masks in runs'
        )
    return factors


def without_repeated(objects: Sequence[Object]) -> list[Object]:
    """Objects of which none has the class and box of another one, to the pixel; two
    rotated boxes that cross may have the same box around them."""
    once = {}
    for item in objects:
        places = tuple(map(round, (*item.bbox, *rotated_corners(item))))
        once[item.name, item.is_crowd, places] = item
    return list(once.values())


def rotated_corners(item: Object) -> Polygon:
    """The corners of an object with an outline of four; () for another one."""
    polygons = item.outline.polygons if item.outline else ()
    return polygons[0] if len(polygons) == 1 and len(polygons[0]) == 8 else ()


def _corners(objects: Sequence[Object]) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last corners of boxes, (N, 2) each."""
    boxes = np.reshape([item.bbox for item in objects], (-1, 2, 2))
    return boxes[:, 0], boxes.sum(1)


def _insides(objects: Sequence[Object], size: Size) -> np.ndarray:
    """Whether a pixel or more of each box is in the photo, (N,)."""
    begins, ends = _corners(objects)
    return (np.minimum(ends, size) - np.maximum(begins, 0) >= 1).all(1)


def _reach_over(objects: Sequence[Object], size: Size) -> np.ndarray:
    """Whether each box reaches far over the photo's edge, (N,)."""
    return (_corners(objects)[1] > FAR * np.array(size)).any(1)
