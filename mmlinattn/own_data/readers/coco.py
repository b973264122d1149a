"""COCO's files, those of LVIS, and what other tools write as COCO."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Optional
from urllib.parse import urlsplit

from ..records import Annotation, Box, Object, Outline
from ..texts import as_numbers
from .base import (
    AnnotationFile,
    ClassNames,
    make_object,
    make_outline,
    rotated_outline,
    stated_size,
)

PARTS = {'images', 'annotations', 'categories'}
FALSE = {'none', '', '0', '0.0', 'false', 'no'}  # flags as tools write them


def recognizes(file: AnnotationFile) -> bool:
    """Return whether it has COCO's parts; a panoptic file, which lies beside another
    one, is none."""
    if file.ending != '.json' or not isinstance(file.json, dict):
        return False
    if not file.json.keys() >= PARTS:
        return False
    return not any(
        'segments_info' in annotation for annotation in file.json['annotations'] or ()
    )


def read(file: AnnotationFile, classes: ClassNames) -> list[Annotation]:
    """Return its photos.

    Raises:
        ValueError: If ids are duplicate or missing, or an object has no box or name.
    """
    content = file.json
    names = _by_id(content, 'categories')
    images = _by_id(content, 'images')
    entries: dict[str, list[Any]] = {image_id: [] for image_id in images}
    for entry in content['annotations'] or ():
        image_id = str(entry.get('image_id'))
        category_id = str(entry.get('category_id'))
        if category_id not in names or image_id not in images:
            raise ValueError(
                f'annotation {entry.get("id")}: its image ({image_id}) or category '
                f'({category_id}) is not in the file'
            )
        entries[image_id].append(entry)
    annotations = []
    for image_id, image in images.items():
        objects = []
        for entry in entries[image_id]:
            name = names[str(entry['category_id'])]['name']
            objects.append(parse_object(entry, name))
        size = stated_size(image.get('width'), image.get('height'))
        annotations.append(Annotation(_photo_name(image), size, tuple(objects)))
    return annotations


def _by_id(content: Mapping[str, Any], part: str) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for entry in content[part]:
        if str(entry['id']) in entries:
            raise ValueError(f'two of its {part} have the id {entry["id"]}')
        entries[str(entry['id'])] = entry
    return entries


def _photo_name(image: Mapping[str, Any]) -> str:
    name = image.get('file_name') or image['coco_url']  # of LVIS
    return urlsplit(name).path if '://' in name else name


def parse_object(entry: Mapping[str, Any], name: Any) -> Object:
    """Return an object of an annotation."""
    outline = parse_outline(entry.get('segmentation') or ())
    box = parse_box(entry.get('bbox'))
    if box and outline is None:
        outline = rotated_outline(box, parse_rotation(entry))
        box = None if outline else box
    area = as_numbers([entry.get('area')])
    return make_object(
        name,
        box,
        outline,
        area=area[0] if area else 0.0,
        is_crowd=parse_crowd(entry),
        annotation_id=entry.get('id'),
    )


def parse_box(value: Any) -> Optional[Box]:
    """Return a box of four numbers, which may be text; None for anything else."""
    numbers = as_numbers(value or ())
    if not numbers or len(numbers) != 4:
        return None
    x, y, width, height = numbers
    return x, y, width, height


def parse_outline(value: Any) -> Optional[Outline]:
    """Return an outline of run lengths, or of polygons in any nesting.

    Raises:
        ValueError: If it is text.
    """
    if isinstance(value, str):
        raise ValueError(f'an outline is text, not a list: {value[:40]}')
    if isinstance(value, dict):
        return Outline(runs=value) if value.get('counts') else None
    polygons = value if all(map(_is_list, value)) else [value]
    if len(polygons) > 2 and all(len(polygon) == 2 for polygon in polygons):
        polygons = [polygons]  # corners of one polygon
    return make_outline(_flat(polygon) for polygon in polygons)


def _flat(polygon: Iterable[Any]) -> list[Any]:
    places = list(polygon)
    return list(chain(*places)) if all(map(_is_list, places)) else places


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def parse_rotation(entry: Mapping[str, Any]) -> float:
    """Return the angle in degrees by which CVAT says that a box is turned."""
    attributes = entry.get('attributes')
    rotation = attributes.get('rotation') if isinstance(attributes, dict) else None
    numbers = as_numbers([rotation or 0])
    return numbers[0] if numbers else 0.0


def parse_crowd(entry: Mapping[str, Any]) -> bool:
    """Return whether an object is a crowd, or to be ignored."""
    is_cvat = 'occluded' in (entry.get('attributes') or ())  # it calls masks crowds
    flags = [entry.get('ignore'), None if is_cvat else entry.get('iscrowd')]
    return any(str(flag).strip().lower() not in FALSE for flag in flags)
