"""Pascal VOC's files, one for each photo, also with the outlines that other tools add
to them, and those of the old LabelMe, of roLabelImg, and of DIOR."""

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path, PureWindowsPath
from typing import Any, Optional
from xml.etree.ElementTree import Element

from ..outlines import Outline
from ..records import Annotation, Object
from ..texts import as_numbers
from .base import (
    AnnotationFile,
    ClassNames,
    bounding_box,
    make_object,
    make_outline,
    read_mask,
    rotated_rectangle,
    stated_size,
)

ROTATED = ('cx', 'cy', 'w', 'h', 'angle')
OUTLINES = ('polygon', 'segmentation', 'segm', 'points')
PLACE = re.compile(r'([xy])(\d*)')
CORNERS = ('xmin', 'ymin', 'xmax', 'ymax')


def recognizes(file: AnnotationFile) -> bool:
    """Return whether it is an annotation of one photo."""
    return file.ending == '.xml' and file.xml.tag == 'annotation'


def read(file: AnnotationFile, classes: ClassNames) -> list[Annotation]:
    """Return its photo; objects that are difficult are crowds.

    Raises:
        ValueError: If an object has no box, or no name.
    """
    root = file.xml
    size = stated_size(root.findtext('size/width'), root.findtext('size/height'))
    elements = list(root.iter('object'))
    kinds = list(map(kind_without_area, elements))
    objects = [
        parse_object(element, file.path)
        for element, kind in zip(elements, kinds)
        if kind is None
    ]
    return [
        Annotation(
            root.findtext('filename', ''),
            size,
            tuple(objects),
            skipped_shapes=tuple(filter(None, kinds)),
        )
    ]


def kind_without_area(element: Element) -> Optional[str]:
    """Return what LabelMe's element is if it is no object with an area, or None."""
    if is_true(element.findtext('deleted')):
        return 'deleted'
    polygons = element.findall('polygon')
    has_box = any(element.find(tag) is not None for tag in ('bndbox', 'robndbox'))
    if has_box or len(polygons) != 1:
        return None
    return {2: 'point', 4: 'line'}.get(len(parse_polygon(polygons[0])))


def is_true(flag: Optional[str]) -> bool:
    """Return whether a flag is set."""
    return (flag or '').strip().lower() in ('1', 'true', 'yes')


def parse_rotated(element: Element) -> Sequence[Any]:
    """Return the corners of a rotated box of roLabelImg, with a center, sides, and an
    angle in radians, or of DIOR, with four corners."""
    numbers = as_numbers(element.findtext(key) for key in ROTATED)
    if numbers:
        x, y, width, height, turn = numbers
        return rotated_rectangle(x, y, width, height, turn)
    return [corner.text for corner in element]


def parse_object(element: Element, path: Path) -> Object:
    """Return the object of an element of a file.

    Raises:
        ValueError: If it has no box, no name, or a mask that is not there.
    """
    corners = [element.findtext(f'bndbox/{key}') for key in CORNERS]
    rotated = element.find('robndbox')
    polygons = [parse_rotated(rotated)] if rotated is not None else []
    for key in OUTLINES:
        polygons = polygons or list(map(parse_polygon, element.findall(key)))
    return make_object(
        element.findtext('name'),
        bounding_box(corners) if all(corners) else None,
        make_outline(polygons) or find_mask(element, path),
        is_crowd=is_true(element.findtext('difficult')),
    )


def find_mask(element: Element, path: Path) -> Optional[Outline]:
    """Return the outline of LabelMe's mask, a picture in a folder Masks.

    Raises:
        ValueError: If the picture is not there.
    """
    # a file must not name a place outside its folders
    name = PureWindowsPath(element.findtext('segm/mask', '').strip()).name
    if not name:
        return None
    beside = ('Masks' if part == 'Annotations' else part for part in path.parent.parts)
    for folder in (Path(*beside), path.parent / 'Masks', path.parent):
        if (folder / name).is_file():
            return read_mask(folder / name)
    raise ValueError(f'its mask {name} is not there')


def parse_polygon(element: Element) -> list[Any]:
    """Return places x, y, x, y, ... of an element that has points, numbered or one
    after another, or a text of numbers."""
    places: dict[str, list[Optional[str]]] = {'x': [], 'y': []}
    numbers: dict[str, list[int]] = {'x': [], 'y': []}
    for leaf in element.iter():
        name = PLACE.fullmatch(leaf.tag.lower())
        if name and not len(leaf):
            places[name[1]].append(leaf.text)
            numbers[name[1]].append(int(name[2] or 0))
    if not places['x']:
        return re.findall(r'[^\s,;()\[\]]+', ''.join(element.itertext()))
    ordered = []
    for key in 'xy':  # x1, y1, x2, y2, or all of x first; equal numbers stay in order
        order = sorted(range(len(numbers[key])), key=numbers[key].__getitem__)
        ordered.append([places[key][i] for i in order])
    return list(chain.from_iterable(zip(*ordered)))
