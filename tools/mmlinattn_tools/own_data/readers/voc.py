"""Pascal VOC's files, one for each photo, and those of the old LabelMe, of roLabelImg,
and of DIOR."""

from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element

from ..records import Annotation, Object
from ..texts import as_numbers
from .base import (
    AnnotationFile,
    ClassNames,
    bounding_box,
    make_object,
    make_outline,
    rotated_rectangle,
    stated_size,
)

ROTATED = ('cx', 'cy', 'w', 'h', 'angle')
CORNERS = ('xmin', 'ymin', 'xmax', 'ymax')


def recognizes(file: AnnotationFile) -> bool:
    """Whether it is an annotation of one photo."""
    return file.ending == '.xml' and file.xml.tag == 'annotation'


def read(file: AnnotationFile, classes: ClassNames) -> list[Annotation]:
    """Its photo; objects that are difficult are crowds.

    Raises:
        ValueError: If an object has no box, or no name.
    """
    root = file.xml
    size = stated_size(root.findtext('size/width'), root.findtext('size/height'))
    objects = tuple(map(parse_object, root.iter('object')))
    return [Annotation(root.findtext('filename', ''), size, objects)]


def parse_rotated(element: Element) -> Sequence[Any]:
    """The corners of a rotated box of roLabelImg, with a center, sides, and an angle in
    radians, or of DIOR, with four corners."""
    numbers = as_numbers(element.findtext(key) for key in ROTATED)
    if numbers:
        x, y, width, height, turn = numbers
        return rotated_rectangle(x, y, width, height, turn)
    return [corner.text for corner in element]


def parse_object(element: Element) -> Object:
    """The object of an element."""
    corners = [element.findtext(f'bndbox/{key}') for key in CORNERS]
    points = [point.text for point in element.findall('polygon/pt/*')]
    rotated = element.find('robndbox')
    return make_object(
        element.findtext('name'),
        bounding_box(corners) if all(corners) else None,
        make_outline([points if rotated is None else parse_rotated(rotated)]),
        is_crowd=element.findtext('difficult', '0').strip() == '1',
    )
