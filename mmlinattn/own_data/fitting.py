"""Objects brought into the pixels of their photos."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mmlinattn.engine.preflight.outlines import Fault, find_fault

from .outlines import FAR as FARTHEST
from .records import Annotation, Object, Size

# what makes labels fit that are of the pixels that a camera wrote
UNROTATE = (
    'in a copy of the photos, `exiftool -r -Orientation= FOLDER` removes the rotation'
)
TURNED = f'if labels do not fit in --show, {UNROTATE}: EXIF data rotate {{}} photos'
RESIZED = '{} photos have another size than in annotations, it resizes the labels'
REPEATED = 'ignored {} duplicate objects'
SMALL = 'ignored {} boxes of less than a pixel in their photo'
OVER = '{} boxes reach far over the edge of their photo (corners instead of sides?)'
FAR = 1.1  # an edge of a box, in sides of the photo
SAME_SHAPE = 0.02  # difference of the factors of width and height


@dataclass(frozen=True)
class Fitted:
    """Objects in the pixels of their photo.

    ``counts`` has their number by the text of a note, and ``faults`` what is wrong with
    outlines that are ignored.
    """

    objects: tuple[Object, ...] = ()
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)


def fit(annotation: Annotation, size: Size, photo: object) -> Fitted:
    """Return objects of a photo without those that the libraries would drop silently,
    and what is noted of them.

    Args:
        annotation (Annotation): What a file says of the photo.
        size (tuple[int]): The photo's width and height in pixels.
        photo (object): Its name in errors.

    Raises:
        ValueError: If the photo was turned or cut after it was labeled.
    """
    counts = Counter[str]()
    objects = list(annotation.objects)
    stated = size
    if annotation.in_fractions:
        objects = [item.scaled(size) for item in objects]
    elif annotation.size and annotation.size != size:
        counts[RESIZED] = 1
        stated = round(annotation.size[0]), round(annotation.size[1])
        factors = resize_factors(annotation, size, photo)
        objects = [item.scaled(factors) for item in objects]
    objects, faults = with_outlines(objects, stated, size)
    once = without_repeated(objects)
    counts[REPEATED] = len(objects) - len(once)
    inside = _insides(once, size)
    counts[SMALL] = len(once) - int(inside.sum())
    counts[OVER] = int((inside & _reach_over(once, size)).sum())
    return Fitted(tuple(itertools.compress(once, inside)), counts, faults)


def with_outlines(
    objects: Sequence[Object], stated: Size, size: Size
) -> tuple[list[Object], list[Fault]]:
    """Return objects with their outlines in a photo that was resized from a stated
    size, or without those that can't be drawn, and what is wrong with these."""
    fitting, faults = [], []
    for item in objects:
        outline = item.outline
        if outline is None:
            fitting.append(item)
            continue
        # run lengths may have been made after the photo was resized
        was = size if outline.runs_size == size else stated
        fault = outline.find_fault(was if outline.runs else size)
        if fault:
            faults.append(fault)
            x, y, width, height = item.bbox
            # one that was made of such an outline is not the box of anything
            if find_fault([[x, y, x + width, y + height]], size, FARTHEST * max(size)):
                continue
            fitting.append(replace(item, outline=None, area=width * height))
        else:
            outline = outline.in_photo(was, size)
            area = outline.area if outline.runs else item.area
            fitting.append(replace(item, outline=outline, area=area))
    return fitting, faults


def resize_factors(
    annotation: Annotation, size: Size, photo: object
) -> tuple[float, float]:
    """Factors of width and height by which a photo was resized after it was labeled.

    Raises:
        ValueError: If it was turned or cut.
    """
    width, height = annotation.size or size
    factors = size[0] / width, size[1] / height
    if not abs(factors[0] / factors[1] - 1) < SAME_SHAPE:
        raise ValueError(
            f'{photo} has {size[0]} x {size[1]} pixels, and its annotation says '
            f'{width:g} x {height:g}: the photo was turned or cut after it was labelled'
        )
    return factors


def without_repeated(objects: Sequence[Object]) -> list[Object]:
    """Return objects of which none has the class, box and outline of another one, to
    the pixel; one without an outline repeats one that has any."""
    alike: dict[Any, dict[Any, Object]] = {}
    for item in objects:
        box = item.name, item.is_crowd, *map(round, item.bbox)
        outlines = alike.setdefault(box, {})
        outlines[item.outline and item.outline.key] = item
    for outlines in alike.values():
        if len(outlines) > 1:
            outlines.pop(None, None)
    distinct = {id(item) for outlines in alike.values() for item in outlines.values()}
    return [item for item in objects if id(item) in distinct]


def _corners(objects: Sequence[Object]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last corners of boxes, (N, 2) each."""
    boxes = np.reshape([item.bbox for item in objects], (-1, 2, 2))
    return boxes[:, 0], boxes.sum(1)


def _insides(objects: Sequence[Object], size: Size) -> np.ndarray:
    """Return whether a pixel or more of each box is in the photo, (N,)."""
    begins, ends = _corners(objects)
    return (np.minimum(ends, size) - np.maximum(begins, 0) >= 1).all(1)


def _reach_over(objects: Sequence[Object], size: Size) -> np.ndarray:
    """Return whether each box reaches far over the photo's edge, (N,)."""
    return (_corners(objects)[1] > FAR * np.array(size)).any(1)
