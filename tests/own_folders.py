"""Folders as users have them, written from a table: a path and its content.

In a path, {i} stands for the numbers of photos and {name} for their classes in turn;
a content is text, bytes, an array of pixels, what becomes JSON, or a function of i.
Each photo has a square of its class's color at (8, 9), 22 pixels wide and high.
"""

import base64
import io
import json

import numpy as np
from PIL import Image

NAMES = ('red', 'blue')
COLORS = dict(red=(220, 20, 60), blue=(0, 114, 240))
SIZE = WIDTH, HEIGHT = 64, 48
BOX = [8, 9, 22, 22]
SQUARE = [8, 9, 30, 9, 30, 31, 8, 31]


def grow(root, tree, numbers=range(10)):
    """Writes the files of a tree, and returns its root."""
    for path, content in tree.items():
        for i in numbers if '{' in path else (0,):
            place = root / path.format(i=i, name=name_of(i), split=split_of(i))
            place.parent.mkdir(parents=True, exist_ok=True)
            write(place, content(i) if callable(content) else content)
    return root


def name_of(i):
    return NAMES[i % 2]


def split_of(i):
    return 'val' if i > 7 else 'train'


def write(path, content):
    if isinstance(content, np.ndarray):
        Image.fromarray(content).save(path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text)


def photo(i, size=SIZE, name=None):
    """The pixels of a photo, (H, W, 3)."""
    pixels = np.random.default_rng(i).integers(99, 150, (*size[::-1], 3), np.uint8)
    pixels[9:31, 8:30] = COLORS[name or name_of(i)]
    return pixels


def label_map(*ids, size=SIZE, dtype=np.uint8):
    """The pixels of a label map: ids of the ground, of the square and of the top."""
    labels = np.full(size[::-1], ids[0], dtype)
    labels[9:31, 8:30], labels[:4] = ids[1], ids[-1]
    return labels


def color_map(ground, square):
    """The pixels of a label map in two colors."""
    return np.where(label_map(0, 1, 0)[..., None], np.uint8(square), np.uint8(ground))


def coco(numbers=range(10), file_name='{i}.jpg', categories=NAMES, image=(), **values):
    """A COCO file; ``image`` and ``values`` are set in each image and annotation."""
    ids = {name: i + 5 for i, name in enumerate(categories)}
    images, annotations = [], []
    for k, i in enumerate(numbers):
        images.append(dict(image, id=k, file_name=file_name.format(i=i)))
        entry = dict(id=k, image_id=k, bbox=BOX, category_id=ids[name_of(i)])
        annotations.append({**entry, **values})
    categories = [dict(id=i, name=name) for name, i in ids.items()]
    return dict(images=images, annotations=annotations, categories=categories)


OUTLINE = dict(segmentation=[SQUARE])


def voc(i, file_name='other.jpg', name=None, more=''):
    """A VOC file, as programs indent it."""
    name = name or f'\n  {name_of(i)} '
    return (
        f'<annotation><filename>{file_name}</filename><size><width>0</width></size>'
        f'<object><name>{name}</name>\n<bndbox><xmin>8</xmin><ymin>9</ymin>'
        f'<xmax> 30.0 </xmax><ymax>31</ymax></bndbox></object>{more}</annotation>'
    )


def labelme(i):
    """A labelme file with a polygon and a point; its photo was called otherwise."""
    corners = np.reshape(SQUARE, (-1, 2)).tolist()
    shapes = [dict(label=name_of(i), points=corners, shape_type='polygon')]
    shapes.append(dict(label=name_of(i), points=corners[:1], shape_type='point'))
    return dict(shapes=shapes, imagePath='..\\x\\old.jpg', imageWidth=WIDTH)


def cvat():
    """A CVAT file of all photos."""
    images = []
    for i in range(10):
        images.append(
            f'<image name="sub/{i}.jpg" width="64" height="48"><polyline label="a" '
            f'points="1,2;3,4"/><polygon label="{name_of(i)}" '
            'points="8,9;30,9;30,31;8,31"/></image>'
        )
    return f'<annotations>{"".join(images)}</annotations>'


def yolo(i, outline=True):
    """A YOLO file with the outline or the box of the square."""
    places = np.reshape(SQUARE if outline else [19, 20, 22, 22], (-1, 2)) / SIZE
    return f'{i % 2} {" ".join(map(str, places.ravel().tolist()))}\n'


def via_region(i, kind='polygon'):
    """A region of the VGG Image Annotator, with a remark beside its class."""
    x, y = SQUARE[::2], SQUARE[1::2]
    shape = dict(name='polygon', all_points_x=x, all_points_y=y)
    if kind == 'rect':
        shape = dict(zip(('name', 'x', 'y', 'width', 'height'), ('rect', *BOX)))
    attributes = {'Class': name_of(i), 'remark': 'x'}
    return dict(shape_attributes=shape, region_attributes=attributes)


def via(i_range=range(10), kind='polygon'):
    """The entries of a file of the VGG Image Annotator."""
    entries = {}
    for i in i_range:
        point = dict(shape_attributes=dict(name='point'), region_attributes={})
        regions = [via_region(i, kind), point]
        entries[f'{i}.jpg99'] = dict(filename=f'{i}.jpg', size=99, regions=regions)
    return entries


def via_table():
    """A table of the VGG Image Annotator."""
    columns = 'filename,file_size,file_attributes,region_count,region_id'
    lines = [f'{columns},region_shape_attributes,region_attributes']
    for i in range(10):
        region = via_region(i, 'rect')
        cells = [json.dumps(part).replace('"', '""') for part in region.values()]
        lines.append(f'{i}.jpg,9,"{{}}",1,0,"{cells[0]}","{cells[1]}"')
    return '\n'.join(lines)


def table(header, row):
    """A table with a row for each photo."""
    lines = [header] if header else []
    lines += [row.format(i=i, name=name_of(i)) for i in range(10)]
    return '\n'.join(lines)


def labelme_mask(i):
    """A labelme file of an AI tool, with a mask of the square."""
    with io.BytesIO() as file:
        Image.fromarray(np.ones((22, 22), bool)).save(file, 'PNG')
        mask = base64.b64encode(file.getvalue()).decode()
    points = [[8, 9], [29, 30]]
    shape = dict(label=name_of(i), shape_type='mask', points=points, mask=mask)
    return dict(shapes=[shape], imagePath=f'{i}.jpg', imageWidth=64, imageHeight=48)


def cvat_masks():
    """A CVAT file of brushes' masks: the square, and rows of zeros around it."""
    runs = [24 + 1, *[22, 2] * 21, 22, 1 + 24]
    images = []
    for i in range(10):
        places = 'left="7" top="8" width="24" height="24"'
        images.append(
            f'<image name="{i}.jpg" width="64" height="48"><mask label="{name_of(i)}" '
            f'{places} rle="{", ".join(map(str, runs))}"/></image>'
        )
    return f'<annotations>{"".join(images)}</annotations>'


def voc_outline(i, outline='', more=''):
    """A VOC file with an outline behind the box."""
    return voc(i, f'{i}.jpg', more=more).replace('</object>', f'{outline}</object>', 1)


def numbered(places):
    """Places as numbered elements of XML."""
    elements = []
    for k in range(len(places) // 2):
        x, y = places[2 * k : 2 * k + 2]
        elements.append(f'<x{k + 1}>{x}</x{k + 1}><y{k + 1}>{y}</y{k + 1}>')
    return ''.join(elements)


def points(places, more=''):
    """Places as elements of points of XML."""
    pairs = zip(places[::2], places[1::2])
    return ''.join(f'<pt><x>{x}</x><y>{y}</y>{more}</pt>' for x, y in pairs)
