"""CVAT's files, which have many photos."""

import re
from collections import Counter
from typing import Optional
from xml.etree.ElementTree import Element

import numpy as np

from ..outlines import Outline, Patch
from ..records import Annotation, Box, Object
from ..texts import as_numbers
from .base import (
    AnnotationFile,
    ClassNames,
    bounding_box,
    ellipse,
    make_object,
    make_outline,
    rotated_outline,
    stated_size,
)
from .coco import parse_box


def recognizes(file: AnnotationFile) -> bool:
    """Return whether it has CVAT's root."""
    return file.ending == '.xml' and file.xml.tag == 'annotations'


def read(file: AnnotationFile, classes: ClassNames) -> list[Annotation]:
    """Return its photos.

    Raises:
        ValueError: If a shape has no area, or no name.
    """
    annotations = []
    for image in file.xml.iter('image'):
        objects, skipped = [], Counter[str]()
        for shape in image:
            if shape.tag == 'tag':
                continue
            has_label = bool(shape.get('label', '').strip())
            item = parse_object(shape) if has_label else None
            if item:
                objects.append(item)
            else:
                skipped[shape.tag if has_label else 'without a label'] += 1
        annotations.append(
            Annotation(
                # a project's photos are in folders of its subsets
                '/'.join(filter(None, (image.get('subset'), image.get('name')))),
                stated_size(image.get('width'), image.get('height')),
                tuple(objects),
                skipped_shapes=tuple(skipped.elements()),
            )
        )
    return annotations


def parse_object(shape: Element) -> Optional[Object]:
    """Return the object of a shape; None if it is no box or outline."""
    name, places = shape.get('label'), dict(shape.items())
    if shape.tag == 'box':
        box = bounding_box(places[key] for key in ('xtl', 'ytl', 'xbr', 'ybr'))
        outline = rotated_outline(box, float(places.get('rotation') or 0))
        return make_object(name, None if outline else box, outline)
    if shape.tag == 'mask':
        sides = parse_box(places[key] for key in ('left', 'top', 'width', 'height'))
        outline = parse_mask(places.get('rle', ''), sides) if sides else None
        return make_object(name, None if outline else sides, outline)
    if shape.tag == 'polygon':
        points = re.split('[,;]', places['points'])
        return make_object(name, outline=make_outline([points]))
    if shape.tag == 'ellipse':
        x, y, a, b = (float(places[key]) for key in ('cx', 'cy', 'rx', 'ry'))
        return make_object(name, outline=make_outline([ellipse(x, y, a, b)]))
    return None


def parse_mask(text: str, box: Box) -> Optional[Outline]:
    """Return the outline of a mask in a box, of runs by rows that begin with the
    background; None if it is empty.

    Raises:
        ValueError: If runs are no numbers, or are longer than the box.
    """
    left, top, width, height = map(int, box)
    runs = as_numbers(filter(None, re.split(r'[,\s]+', text)))
    area = width * height
    if runs is None or any(run < 0 or run % 1 for run in runs) or sum(runs) > area:
        raise ValueError(f'the runs of a mask are not for {width} x {height} pixels')
    values = np.arange(len(runs)) % 2 == 1
    pixels = np.zeros(area, bool)
    pixels[: int(sum(runs))] = np.repeat(values, np.array(runs, int))
    patch = Patch.cut(left, top, pixels.reshape(height, width))
    return Outline(patch=patch) if patch else None
