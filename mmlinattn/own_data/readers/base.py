"""What readers share: files, and the parts of objects."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Optional, Protocol, Union
from xml.etree import ElementTree

import numpy as np
from PIL import Image

from ..outlines import Outline, Patch, Polygon, bounding_box, polygon_area
from ..records import Annotation, Box, Object
from ..texts import as_numbers, read_text
from ..words import IGNORED
from .yolo_lines import Layout

__all__ = ['Box', 'Outline', 'bounding_box']

CORNERS = 32  # of the polygon that stands for an ellipse
LEAST_PART = 0.02  # of a box that a stated area takes; 1 for all is none
ROUNDED = 1.0  # square pixels
LARGEST = 2**28  # pixels of a mask


@dataclass(frozen=True)
class AnnotationFile:
    """A file whose content is parsed once, when a reader asks for it."""

    path: Path

    @property
    def ending(self) -> str:
        return self.path.suffix.lower()

    @cached_property
    def text(self) -> str:
        return read_text(self.path)

    @cached_property
    def json(self) -> Any:
        try:
            return json.loads(self.text)
        except RecursionError as error:
            raise ValueError('its lists are nested too deeply') from error

    @cached_property
    def xml(self) -> ElementTree.Element:
        return ElementTree.parse(self.path).getroot()


@dataclass(frozen=True)
class ClassNames:
    """Names of classes in files that have only their numbers.

    Args:
        names (dict[int, str]): By number.
        layout (Layout): What the numbers of YOLO's lines are.
        column (str, optional): The column of a table, or the attribute, that has the
            class.
    """

    names: dict[int, str]
    layout: Layout = field(default_factory=Layout)
    column: Optional[str] = None


class Reader(Protocol):
    """A module that reads the files of one tool."""

    def recognizes(self, file: AnnotationFile) -> bool: ...

    def read(self, file: AnnotationFile, classes: ClassNames) -> list[Annotation]: ...


def make_object(
    name: Any,
    bbox: Optional[Box] = None,
    outline: Optional[Outline] = None,
    area: float = 0.0,
    is_crowd: bool = False,
    annotation_id: Any = None,
) -> Object:
    """Return an object; its area is that of its outline or, without one, ``area`` if
    this can be the area of something in the box, or else that of the box.

    Raises:
        ValueError: If it has no box, or no name.
    """
    name = '' if name is None else ' '.join(str(name).split())
    if bbox is None and outline is not None:
        bbox = outline.box()
    if bbox is None or not name or not all(map(math.isfinite, bbox)):
        label = name if annotation_id is None else annotation_id
        raise ValueError(f'annotation {label} has no box, or no name')
    box_area = bbox[2] * bbox[3]
    if outline is not None and outline.area > 0:
        area = outline.area
    elif not LEAST_PART * box_area <= area <= box_area + ROUNDED:
        area = box_area
    return Object(name, bbox, area, is_crowd or name == IGNORED, outline)


def make_outline(polygons: Iterable[Iterable[Any]]) -> Optional[Outline]:
    """Return the outline of polygons that have an area; None without any.

    MMDetection ignores an object with an outline of fewer than three corners.
    """
    numbers = [as_numbers(polygon) for polygon in polygons]
    areas = tuple(
        tuple(polygon) for polygon in numbers if polygon and polygon_area(polygon) > 0
    )
    return Outline(areas) if areas else None


def read_mask(
    picture: Union[Path, BinaryIO], left: int = 0, top: int = 0
) -> Optional[Outline]:
    """Return the outline of a mask, a picture whose left top corner lies at (left, top)
    of the photo; None if it is empty.

    Raises:
        ValueError: If it is no picture.
    """
    try:
        with Image.open(picture) as image:
            if image.width * image.height > LARGEST:
                raise ValueError(f'a mask has {image.width} x {image.height} pixels')
            pixels = np.array(image.convert('L')) > 0
    except (OSError, SyntaxError) as error:
        raise ValueError(f'a mask is no picture: {error}') from error
    patch = Patch.cut(left, top, pixels)
    return Outline(patch=patch) if patch else None


def ellipse(x: float, y: float, a: float, b: float, turn: float = 0.0) -> Polygon:
    """Return the polygon of an ellipse around (x, y) with the radii a and b, turned
    clockwise by an angle in radians."""
    angles = [math.tau * i / CORNERS for i in range(CORNERS)]
    steps = [(a * math.cos(angle), b * math.sin(angle)) for angle in angles]
    return turned(x, y, steps, turn)


def rotated_rectangle(
    x: float, y: float, width: float, height: float, turn: float
) -> Polygon:
    """Return the corners of a rectangle around (x, y), turned clockwise by an angle in
    radians."""
    right, down = width / 2, height / 2
    steps = [(-right, -down), (right, -down), (right, down), (-right, down)]
    return turned(x, y, steps, turn)


def turned(
    x: float, y: float, steps: Iterable[tuple[float, float]], turn: float
) -> Polygon:
    """Return the polygon of corners that lie (right, down) of (x, y), turned clockwise
    around it by an angle in radians."""
    places: list[float] = []
    for right, down in steps:
        places.append(x + right * math.cos(turn) - down * math.sin(turn))
        places.append(y + right * math.sin(turn) + down * math.cos(turn))
    return tuple(places)


def rotated_outline(box: Box, degrees: float) -> Optional[Outline]:
    """Return the outline of a box that is turned clockwise around its center; None if
    it is not."""
    if not degrees % 360:
        return None
    x, y, width, height = box
    center = x + width / 2, y + height / 2
    return make_outline(
        [rotated_rectangle(*center, width, height, math.radians(degrees))]
    )


def stated_size(width: Any, height: Any) -> Optional[tuple[float, float]]:
    """Return the size that a file says of a photo, or None."""
    size = as_numbers((width, height))
    return (size[0], size[1]) if size and all(size) else None
