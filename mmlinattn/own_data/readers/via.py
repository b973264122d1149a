"""The VGG Image Annotator's files: projects, exported annotations, and tables."""

import csv
import json
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Optional

from ..records import Annotation, Object
from .base import AnnotationFile, ClassNames, ellipse, make_object, make_outline
from .tables import CLASS_COLUMNS, plain_column

PROJECT = '_via_img_metadata'
COLUMNS = ('filename', 'region_shape_attributes', 'region_attributes')
UNNAMED = 'object'  # the class of a file in which regions have no attributes

Region = Mapping[str, Any]


def recognizes(file: AnnotationFile) -> bool:
    """Return whether it is a project, or has entries with a name and regions."""
    if file.ending == '.csv':
        header = file.text.partition('\n')[0]
        return all(column in header for column in COLUMNS)
    if file.ending != '.json' or not isinstance(file.json, dict):
        return False
    entries = list(file.json.get(PROJECT, file.json).values())
    return bool(entries) and all(map(_is_entry, entries))


def _is_entry(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= {'filename', 'regions'}


def read(file: AnnotationFile, classes: ClassNames) -> list[Annotation]:
    """Return its photos; ``--column`` names the attribute that has the class.

    Raises:
        ValueError: If it is not clear which attribute has the class, or a region has
            none.
    """
    photos = _table_photos(file) if file.ending == '.csv' else _json_photos(file)
    regions = chain.from_iterable(photos.values())
    attribute = class_attribute(regions, classes.column)
    annotations = []
    for name, entries in photos.items():
        objects, skipped = [], []
        for i, region in enumerate(entries):
            item = parse_region(region, attribute, f'{i} of {name}')
            if item:
                objects.append(item)
            else:
                skipped.append(str(region['shape_attributes'].get('name')))
        annotations.append(
            Annotation(name, None, tuple(objects), skipped_shapes=tuple(skipped))
        )
    return annotations


def _json_photos(file: AnnotationFile) -> dict[str, list[Region]]:
    photos: dict[str, list[Region]] = {}
    for entry in file.json.get(PROJECT, file.json).values():
        regions = entry['regions']  # a list, or a dictionary in older files
        regions = regions.values() if isinstance(regions, dict) else regions
        photos.setdefault(entry['filename'], []).extend(regions)
    return photos


def _table_photos(file: AnnotationFile) -> dict[str, list[Region]]:
    photos: dict[str, list[Region]] = {}
    for row in csv.DictReader(file.text.splitlines()):
        regions = photos.setdefault(row['filename'], [])
        shape = json.loads(row['region_shape_attributes'] or '{}')
        if shape:  # a photo without regions has an empty one
            attributes = json.loads(row['region_attributes'] or '{}')
            regions.append(dict(shape_attributes=shape, region_attributes=attributes))
    return photos


def class_attribute(regions: Iterable[Region], column: Optional[str]) -> Optional[str]:
    """Return the attribute of regions that has their class; None if they have none at
    all.

    Raises:
        ValueError: If several could have it.
    """
    names: dict[str, None] = {}
    for region in regions:
        names.update(dict.fromkeys(region.get('region_attributes') or ()))
    if not names:
        return None
    wanted = {plain_column(column)} if column else CLASS_COLUMNS
    fitting = [name for name in names if plain_column(name) in wanted]
    fitting = fitting or ([] if column else list(names))
    if len(fitting) != 1:
        raise ValueError(
            'which attribute of a region has the class? --column names one of '
            f'{", ".join(names)}'
        )
    return fitting[0]


def region_name(region: Region, attribute: Optional[str]) -> Any:
    """Return the class of a region."""
    if attribute is None:
        return UNNAMED
    name = (region.get('region_attributes') or {}).get(attribute)
    if isinstance(name, dict):  # boxes that are ticked
        return ' '.join(key for key, ticked in name.items() if ticked)
    return name


def parse_region(
    region: Region, attribute: Optional[str], label: str
) -> Optional[Object]:
    """Return the object of a region, called ``label`` in errors; None if it is no box
    or outline."""
    shape, name = region['shape_attributes'], region_name(region, attribute)
    kind = shape.get('name')
    if kind == 'rect':
        sides = (float(shape[key]) for key in ('x', 'y', 'width', 'height'))
        x, y, width, height = sides
        return make_object(name, (x, y, width, height), annotation_id=label)
    if kind == 'polygon':
        places = chain(*zip(shape['all_points_x'], shape['all_points_y']))
        outline = make_outline([places])
        return make_object(name, outline=outline, annotation_id=label)
    if kind in ('circle', 'ellipse'):
        x, y = float(shape['cx']), float(shape['cy'])
        a, b = shape.get('rx', shape.get('r')), shape.get('ry', shape.get('r'))
        turn = float(shape.get('theta') or 0)
        polygon = ellipse(x, y, float(a), float(b), turn)
        outline = make_outline([polygon])
        return make_object(name, outline=outline, annotation_id=label)
    return None
