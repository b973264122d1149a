"""Pascal VOC's files, one for each photo, and those of the old LabelMe."""

from xml.etree.ElementTree import Element

from ..records import Annotation, Object
from .base import (
    AnnotationFile,
    ClassNames,
    bounding_box,
    make_object,
    make_outline,
    stated_size,
)

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


def parse_object(element: Element) -> Object:
    """The object of an element."""
    corners = [element.findtext(f'bndbox/{key}') for key in CORNERS]
    points = [point.text for point in element.findall('polygon/pt/*')]
    return make_object(
        element.findtext('name'),
        bounding_box(corners) if all(corners) else None,
        make_outline([points]),
        is_crowd=element.findtext('difficult', '0').strip() == '1',
    )
