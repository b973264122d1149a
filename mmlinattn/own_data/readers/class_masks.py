"""A folder of masks for each class: objects of the class are white, or not 0."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from ..outlines import Outline, encode
from ..records import Annotation, Match, Note, Object
from ..words import LABEL_MAP_WORDS, split_of_name, words_of
from .base import make_object

MOST_LEVELS = 2  # numbers of a mask; more are smoothed borders
WHITE = 127


def read_class_masks(
    matches: Sequence[Match], qualifiers: frozenset[str]
) -> list[Match]:
    """Return matches of photos with an object for each class, of masks in folders that
    are called after the classes; none if the folders are others.

    Args:
        matches (list[Match]): Photos and their masks.
        qualifiers (set[str]): Words in the names of folders that mean no class.

    Raises:
        ValueError: If a mask can't be read, or has more than two numbers.
    """
    by_photo: dict[Path, dict[str, Match]] = defaultdict(dict)
    for match in matches:
        folder = match.source.parent
        words = set(words_of(folder.name))
        is_known = words <= LABEL_MAP_WORDS | qualifiers
        if match.path is None or is_known or split_of_name(folder.name):
            return []
        if by_photo[match.path].setdefault(folder.name, match) is not match:
            return []
    if not any(len(masks) > 1 for masks in by_photo.values()):
        return []
    return [_photo_of(path, masks) for path, masks in by_photo.items()]


def notes_of(matches: Sequence[Match]) -> list[Note]:
    """Return a note on the classes of masks."""
    annotations = [match.annotation for match in matches if match.annotation]
    names = {item.name for entry in annotations for item in entry.objects}
    return [Note(f'folders of masks are classes: {", ".join(sorted(names))}')]


def _photo_of(path: Path, masks: dict[str, Match]) -> Match:
    objects: list[Object] = []
    size = None
    for name, match in masks.items():
        mask = read_mask(match.source)
        size = float(mask.shape[1]), float(mask.shape[0])
        x, y, width, height = cv2.boundingRect(mask)
        if width:
            box = float(x), float(y), float(width), float(height)
            objects.append(make_object(name, box, Outline(runs=encode(mask))))
    first = next(iter(masks.values()))
    annotation = Annotation(path.name, size, tuple(objects))
    return Match(path, first.source, path.name, first.split, annotation)


def read_mask(path: Path) -> np.ndarray:
    """Return a mask (H, W), uint8, 0 or 1.

    Raises:
        ValueError: If it can't be read, or has other numbers than black and white.
    """
    try:
        with Image.open(path) as image:
            is_plain = len(image.getbands()) == 1
            pixels = np.array(image if is_plain else image.convert('L'))
    except (MemoryError, OSError, SyntaxError) as error:
        raise ValueError(f'{path}: the mask can not be read: {error}') from error
    levels = np.unique(pixels)
    if len(levels) <= MOST_LEVELS:
        return (pixels > 0).astype(np.uint8)
    ends = np.isin(levels, (0, 255)).sum()
    if ends < 2 or pixels.dtype != np.uint8:
        raise ValueError(
            f'{path}: the mask of a class has {len(levels)} numbers, and not two'
        )
    return (pixels > WHITE).astype(np.uint8)
