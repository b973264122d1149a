"""labelme's files, one for each photo."""

import base64
import io
import math
from itertools import chain
from typing import Any, Optional

from ..outlines import Outline
from ..records import Annotation, Object
from .base import (
    AnnotationFile,
    ClassNames,
    bounding_box,
    ellipse,
    make_object,
    make_outline,
    read_mask,
    stated_size,
)

POLYGONS = ('polygon', 'rotation', 'oriented_rectangle')


def recognizes(file: AnnotationFile) -> bool:
    """Return whether it has labelme's parts."""
    content = file.json if file.ending == '.json' else None
    return isinstance(content, dict) and 'shapes' in content and 'imagePath' in content


def read(file: AnnotationFile, classes: ClassNames) -> list[Annotation]:
    """Return its photo.

    Raises:
        ValueError: If a shape has no area, or no name.
    """
    content = file.json
    skipped: list[str] = []
    groups: dict[Any, list[dict[str, Any]]] = {}
    for i, shape in enumerate(content['shapes']):
        kind, group = shape.get('shape_type') or 'polygon', shape.get('group_id')
        is_part = kind in POLYGONS and group is not None
        if kind in ('rectangle', 'mask', 'circle', *POLYGONS):
            # polygons of a group are parts of one object
            key = (shape['label'], group) if is_part else i
            groups.setdefault(key, []).append(shape)
        else:
            skipped.append(kind)
    size = stated_size(content.get('imageWidth'), content.get('imageHeight'))
    objects = tuple(map(parse_object, groups.values()))
    return [
        Annotation(content['imagePath'], size, objects, skipped_shapes=tuple(skipped))
    ]


def parse_object(shapes: list[dict[str, Any]]) -> Object:
    """Return the object of a shape, or of the polygons of a group."""
    first = shapes[0]
    name, points, kind = first['label'], first['points'], first.get('shape_type')
    if kind in ('rectangle', 'mask'):
        outline = parse_mask(first['mask'], points[0]) if first.get('mask') else None
        box = None if outline else bounding_box(chain(*points))
        return make_object(name, box, outline)
    if kind == 'circle':
        radius = math.dist(*points)
        x, y = points[0]
        polygon = ellipse(x, y, radius, radius)
        return make_object(name, outline=make_outline([polygon]))
    polygons = (chain(*shape['points']) for shape in shapes)
    return make_object(name, outline=make_outline(polygons))


def parse_mask(text: str, corner: list[float]) -> Optional[Outline]:
    """Return the outline of a mask, a PNG file as text, that begins at a corner (x, y);
    None if it is empty.

    Raises:
        ValueError: If it is no picture.
    """
    file = io.BytesIO(base64.b64decode(text))
    return read_mask(file, round(corner[0]), round(corner[1]))
