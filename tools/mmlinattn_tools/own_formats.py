"""Reads files of labelling tools: COCO, VOC, CVAT, labelme, YOLO, and tables.

A reader yields photos as (name, size or None, objects). An object is a dict in COCO's
form, with its class under `name`; :func:`to_coco` checks it. `lost` counts shapes that
are neither a box nor an outline.
"""

import codecs
import csv
import json
import math
import re
from collections import Counter
from itertools import chain
from urllib.parse import urlsplit
from xml.etree import ElementTree

import cv2
import numpy as np
import yaml
from pycocotools.coco import COCO

PARTS = {'images', 'annotations', 'categories'}  # of a COCO file
PARTS_OF_SIDES = 1, 1  # a size: numbers are parts of a photo's
CORNERS = ('xmin', 'ymin', 'xmax', 'ymax')
DATA_KEYS = {'train', 'val', 'test', 'path', 'nc'}  # of YOLO's yaml, beside names
CLASS = ('class', 'label', 'category', 'classname', 'labelname', 'species', 'target')


def counted(text, some):
    """A line on how many things there are, with the first of them; none for none."""
    return [f'{text.format(len(some))}, such as {some[0]}'] if some else []


def read_text(path):
    """The text of a file in UTF-8 or UTF-16, or what Latin-1 makes of it."""
    content = path.read_bytes()
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode('utf-16' if wide else 'utf-8-sig')
    except UnicodeDecodeError:
        return content.decode('latin-1')


def read_json(path, lost):
    """Photos of a COCO file, or of a labelme file; none of another one."""
    content = json.loads(read_text(path))
    if not isinstance(content, dict):
        return
    if 'shapes' in content and 'imagePath' in content:
        size = content.get('imageWidth'), content.get('imageHeight')
        yield content['imagePath'], size, labelme_objects(content['shapes'], lost)
    elif content.keys() >= PARTS:
        yield from read_coco(content)


def read_coco(content):
    names, objects = {}, {}
    for part, found in (('categories', names), ('images', objects)):
        for x in content[part]:
            if str(x['id']) in found:
                raise ValueError(f'two of its {part} have the id {x["id"]}')
            found[str(x['id'])] = x['name'] if part == 'categories' else []
    for x in content['annotations'] or ():
        if 'segments_info' in x:  # a panoptic file, which lies beside another one
            return
        image, category = str(x.get('image_id')), str(x.get('category_id'))
        if category not in names or image not in objects:
            raise ValueError(
                f'annotation {x.get("id")}: its image ({image}) or category '
                f'({category}) is not in the file'
            )
        objects[image].append(dict(x, name=names[category]))
    for x in content['images']:
        name = x.get('file_name') or x['coco_url']  # of LVIS
        if '://' in name:
            name = urlsplit(name).path
        yield name, (x.get('width'), x.get('height')), objects[str(x['id'])]


def labelme_objects(shapes, lost):
    found, groups = [], {}
    for x in shapes:
        kind, points = x.get('shape_type') or 'polygon', x['points']
        group = x['label'], x.get('group_id')
        if kind in ('rectangle', 'mask'):
            found.append(dict(name=x['label'], bbox=bounding_box(chain(*points))))
        elif kind == 'circle':
            outline = ellipse(*points[0], math.dist(*points))
            found.append(dict(name=x['label'], segmentation=[outline]))
        elif kind not in ('polygon', 'rotation', 'oriented_rectangle'):
            lost[kind] += 1
        elif group[1] is not None and group in groups:  # a further part of an object
            groups[group]['segmentation'].append([*chain(*points)])
        else:
            found.append(dict(name=x['label'], segmentation=[[*chain(*points)]]))
            groups[group] = found[-1]
    return found


def read_xml(path, lost):
    """Photos of a VOC file, or of a CVAT file; none of another one."""
    root = ElementTree.parse(path).getroot()
    if root.tag == 'annotation':
        size = tuple(root.findtext(f'size/{x}') for x in ('width', 'height'))
        found = [*map(voc_object, root.iter('object'))]
        yield root.findtext('filename', ''), size, found
    elif root.tag == 'annotations':
        for x in root.iter('image'):
            size = x.get('width'), x.get('height')
            found = [cvat_object(shape, lost) for shape in x if shape.tag != 'tag']
            yield x.get('name'), size, [*filter(None, found)]


def voc_object(x):
    corners = [x.findtext(f'bndbox/{key}') for key in CORNERS]
    # of LabelMe's old files
    points = [float(y.text) for y in x.findall('polygon/pt/*')]
    outline = dict(segmentation=[points]) if points else {}
    difficult = x.findtext('difficult', '0').strip() == '1'
    box = bounding_box(corners) if all(corners) else None
    return dict(outline, name=x.findtext('name'), bbox=box, iscrowd=difficult)


def cvat_object(x, lost):
    name, places = x.get('label'), dict(x.items())
    if x.tag == 'box':
        corners = (places[key] for key in ('xtl', 'ytl', 'xbr', 'ybr'))
        return dict(name=name, bbox=bounding_box(corners))
    if x.tag == 'mask':
        keys = ('left', 'top', 'width', 'height')
        return dict(name=name, bbox=[places[key] for key in keys])
    if x.tag == 'polygon':
        return dict(name=name, segmentation=[re.split('[,;]', places['points'])])
    if x.tag == 'ellipse':
        sides = (float(places[key]) for key in ('cx', 'cy', 'rx', 'ry'))
        return dict(name=name, segmentation=[ellipse(*sides)])
    lost[x.tag] += 1
    return None


def read_yolo(names, keypoints, path, _):
    """The photo of a YOLO file.

    A line has a class and, in parts of the photo's size, the center and sides of a box,
    with a score or keypoints behind them; or the corners of an outline.
    """
    objects = []
    for line in filter(None, map(str.split, read_text(path).splitlines())):
        values = as_numbers(line)
        if not values or len(line) < 5 or values[0] % 1:
            raise ValueError('a line has no class and box of YOLO')
        i, *places = values
        if names and i not in names:
            raise ValueError(f'class {int(i)} has no name, there are {len(names)}')
        if max(places) > 2:  # a box at the edge may reach beyond it
            raise ValueError(
                f'{max(places):g} is no part of the side of a photo, from 0 to 1'
            )
        name = names.get(int(i), f'class {int(i)}')
        if len(places) < 6 or keypoints:
            x, y, w, h = places[:4]
            objects.append(dict(name=name, bbox=[x - w / 2, y - h / 2, w, h]))
        else:
            objects.append(dict(name=name, segmentation=[places]))
    yield path.name, PARTS_OF_SIDES, objects


def yolo_names(files):
    """Names by class, and whether objects have keypoints: of a yaml file, or of a list
    such as classes.txt."""
    found = []
    for path in chain(files['.yaml'], files['.yml']):
        try:
            content = yaml.safe_load(read_text(path))
        except yaml.YAMLError as error:
            if 'names' not in read_text(path):
                continue  # it is of something else
            raise ValueError(f'{path}: {error}') from error
        names = content.get('names') if isinstance(content, dict) else None
        names = dict(enumerate(names)) if isinstance(names, list) else names
        if isinstance(names, dict) and all(str(i).isdigit() for i in names):
            told = {int(i): str(x) for i, x in names.items()}
            found.append((path, told, content.keys()))
    # beside the file of a data set, other lists of names say nothing
    found = [x for x in found if DATA_KEYS & x[2]] or found
    for path, told, _ in found:
        if told != found[0][1]:
            raise ValueError(f'{path}: its names are not those of {found[0][0]}')
    if found:
        return found[0][1], any('kpt_shape' in keys for *_, keys in found)
    lists = [x for x in files['.txt'] if x.name in ('classes.txt', 'obj_names.txt')]
    for path in chain(lists, files['.names']):
        return dict(enumerate(map(str.strip, read_text(path).splitlines()))), False
    return {}, False


def read_table(path, is_photo):
    """Rows of a table by names of columns, with the photo under ``photo``; a column
    without a name has its number. No rows if it names no photos."""
    lines = [x for x in read_text(path).splitlines() if x.strip()]
    marks = [x for x in '\t;|, ' if all(x in line for line in lines)]
    rows = [*csv.reader(lines, delimiter=marks[0])] if lines and marks else []
    rows = [[x.strip() for x in row] for row in rows]
    named = Counter(i for row in rows for i, x in enumerate(row) if is_photo(x))
    if not named:
        return []
    ((photo, _),) = named.most_common(1)
    header = [str(i) for i in range(1, len(rows[0]) + 1)]
    if not is_photo(rows[0][photo]):
        header, *rows = rows
        header = [re.sub('[ _]', '', x.lower()) for x in header]
    elif len(header) == 6 and all(map(as_numbers, zip(*(x[1:5] for x in rows)))):
        header[1:] = [*CORNERS, 'class']
    header[photo] = 'photo'
    if len({*header}) < len(header) or any(len(x) != len(header) for x in rows):
        raise ValueError(f'{path}: rows or columns do not fit its header')
    return [dict(zip(header, row)) for row in rows]


def class_column(rows, path, column=None, known=()):
    """The column of a table that has the classes, beside those that are known."""
    others = [x for x in rows[0] if x not in ('photo', 'split', 'subset', *known)]
    named = {re.sub('[ _]', '', column.lower())} if column else CLASS
    found = [x for x in others if x in named] or ([] if column else others)
    if len(found) != 1:
        raise ValueError(
            f'{path}: which column has the class? --column names one of '
            f'{", ".join(others)}'
        )
    return found[0]


def read_boxes(rows, path, column):
    """Photos of a table with a box in each row."""
    kinds = CORNERS, ('x1', 'y1', 'x2', 'y2')
    keys = next((x for x in kinds if {*x} <= {*rows[0]}), None)
    if keys is None:
        return
    kind, photos = class_column(rows, path, column, (*keys, 'width', 'height')), {}
    for row in rows:
        size = row.get('width'), row.get('height')
        objects = photos.setdefault(row['photo'], (row['photo'], size, []))[2]
        corners = [row[key] for key in keys]
        if any(corners):
            objects.append(dict(name=row[kind], bbox=bounding_box(corners)))
    yield from photos.values()


def mask_of(x, size):
    """The pixels of an object in a photo of a size (W, H), (H, W), uint8, 0 or 1."""
    coco = COCO()
    coco.imgs[0] = dict(width=size[0], height=size[1])
    return coco.annToMask(dict(x, image_id=0))


def to_coco(x, where):
    """An object with its name, box, area and iscrowd, and its outline if it has one.

    MMDetection ignores an object without an outline of three corners, or with an area
    of zero, in silence.
    """
    name = '' if x.get('name') is None else str(x['name'])  # a number may be 0
    box, outline = as_numbers(x.get('bbox') or ()) or (), x.get('segmentation') or ()
    if isinstance(outline, str):
        raise ValueError(f'{where}: an outline is text, not a list: {outline[:40]}')
    if isinstance(outline, dict):
        outline = outline if outline.get('counts') and outline.get('size') else ()
        area = 0
        if outline and len(box) != 4:
            pixels = mask_of(dict(segmentation=outline), outline['size'][::-1])
            box = as_numbers(cv2.boundingRect(pixels))
    else:
        outline = outline if all(map(is_list, outline)) else [outline]
        if len(outline) > 2 and all(len(y) == 2 for y in outline):
            outline = [outline]
        outline = [[*chain(*y)] if all(map(is_list, y)) else y for y in outline]
        outline = [y for y in map(as_numbers, outline) if y and polygon_area(y) > 0]
        area = sum(map(polygon_area, outline))
        if outline and len(box) != 4:
            box = bounding_box(chain(*outline))
    if len(box) != 4 or not name.strip():
        raise ValueError(
            f'{where}: annotation {x.get("id", name)} has no box, or no name'
        )
    stated = (as_numbers([x.get('area')]) or [0])[0]
    found = dict(name=' '.join(name.split()), bbox=box)
    found['area'] = stated if stated > 0 else area or box[2] * box[3]
    if 'occluded' in (x.get('attributes') or ()):  # CVAT calls all masks crowds
        x = dict(x, iscrowd=0)
    flags = (str(x.get(key)).strip().lower() for key in ('iscrowd', 'ignore'))
    found['iscrowd'] = int(not {*flags} <= {'none', '', '0', '0.0', 'false', 'no'})
    return dict(found, segmentation=outline) if outline else found


def is_list(x):
    return isinstance(x, (list, tuple))


def scaled(x, factors):
    """An object in a photo that was resized by factors (x, y)."""

    def resized(places):
        return (np.reshape(places, (-1, 2)) * factors).ravel().tolist()

    found = dict(x, bbox=resized(x['bbox']), area=x['area'] * math.prod(factors))
    if 'segmentation' in x:
        found['segmentation'] = [*map(resized, x['segmentation'])]
    return found


def as_numbers(values):
    """Finite numbers, which may be written as text; None for anything else."""
    try:
        found = [float(x) for x in values]
    except (TypeError, ValueError):
        return None
    return found if all(map(math.isfinite, found)) else None


def polygon_area(outline):
    """The area of an outline [x, y, ...] in pixels; 0 if it is none."""
    if len(outline) < 6 or len(outline) % 2:
        return 0
    return cv2.contourArea(np.reshape(np.float32(outline), (-1, 2)))


def bounding_box(places):
    """The box (x, y, w, h) around points x, y, x, y, ..."""
    points = np.reshape([float(x) for x in places], (-1, 2))
    return [*points.min(0).tolist(), *np.ptp(points, 0).tolist()]


def ellipse(x, y, a, b=None):
    """The outline of an ellipse or a circle, with 32 corners."""
    turns = [math.tau * i / 32 for i in range(32)]
    corners = [(x + a * math.cos(t), y + (b or a) * math.sin(t)) for t in turns]
    return [*chain(*corners)]
