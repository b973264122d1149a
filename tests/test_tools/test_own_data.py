"""Own data: folders of files, and the photos and notes that they give.

The squares of red and blue photos alternate, as tests/own_folders.py has it.
"""

import io
import json
import re
import shutil
import tracemalloc
import zlib
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Optional

import cv2
import numpy as np
import pytest
from own_folders import (
    BOX,
    COLORS,
    NAMES,
    OUTLINE,
    SIZE,
    SQUARE,
    coco,
    color_map,
    cvat,
    cvat_masks,
    grow,
    label_map,
    labelme,
    labelme_mask,
    name_of,
    numbered,
    photo,
    points,
    table,
    via,
    via_table,
    voc,
    voc_outline,
    yolo,
)
from PIL import Image

from mmlinattn.own_data import Options, OwnData, write
from mmlinattn.own_data.headers import ends_early
from mmlinattn.own_data.map_reader import (
    MapReader,
    OtherSize,
    Wanted,
    count_values,
    look_up,
)
from mmlinattn.own_data.outlines import Outline, encode
from mmlinattn.own_data.pictures import (
    ENLARGED,
    SIDE,
    choose_window,
    contours,
    outlines,
    shorten,
)
from mmlinattn.own_data.records import Object, Photo
from mmlinattn.own_data.words import split_of_name, words_of

BOTH = ['blue', 'red']
IN_IMAGES = {'images/{i}.jpg': photo}
MASKS = {'masks/{i}.png': label_map(0, 1)}
EVERY_FIFTH = 'no validation photos: every 5th is used'
# notes on a folder without splits, which every case may have
USUAL = (EVERY_FIFTH, 'no test photos: the validation photos are used for testing')
NO_NAMES = 'have no names: give them with --classes'
DRAWN = 'label maps are drawn from outlines, on class 0'
PNG = 'it takes 10 PNG files beside JPEG files for their label maps'
ONE_VIDEO = '1 sources of photos are both in training and in validation or testing'
BOX_LINE = partial(yolo, outline=False)
YOLO = {**IN_IMAGES, 'labels/{i}.txt': yolo}
NAMED = {'data.yaml': 'train: ../train/images\nnames: [red, blue]'}


SQUARE_MASK = label_map(0, 1, 0)
RUNS = encode(SQUARE_MASK)
TIME = '<time>2007</time>'
DELETED = (
    '<object><name>x</name><deleted>1</deleted><polygon><pt><x>1</x></pt></polygon>'
    '</object>'
)


POINT = '<pt><x>3</x><y>4</y></pt>'
LINE = f'<object><name>x</name><polygon><pt><x>1</x><y>2</y></pt>{POINT}</polygon>'
LINE += '</object>'
POLYGON = f'<polygon>{points(SQUARE)}</polygon>'
MASK_IN_PICTURE = (
    '<segm><box><xmin>8</xmin><ymin>9</ymin><xmax>30</xmax><ymax>31</ymax></box>'
    '<mask>{i}_mask_0.png</mask></segm>'
)


def labelme_web(i, shape=POLYGON, more=''):
    """A file of LabelMe on the web, or of a tool that writes its form."""
    item = f'<object><name>{name_of(i)}</name><deleted>0</deleted>{shape}</object>'
    text = f'<annotation><filename>{i}.jpg</filename>{item}{more}</annotation>'
    return text.replace('{i}', str(i))


def with_more(i, more, outline=False):
    """A YOLO file with numbers behind the box or the outline."""
    return f'{yolo(i, outline).strip()} {" ".join(map(str, more))}\n'


def exif(ending):
    """A photo whose orientation says that it is to be turned."""

    def save(i):
        data = Image.Exif()
        data[0x0112] = 6
        with io.BytesIO() as file:
            Image.fromarray(photo(i)).save(file, ending, exif=data)
            return file.getvalue()

    return save


@dataclass
class Case:
    """A folder and what it gives: photos for train, val and test, classes, a part of
    each note, or of the error."""

    tree: dict[str, Any]
    photos: tuple[int, int, int] = (8, 2, 2)
    classes: list[str] = field(default_factory=lambda: BOTH)
    notes: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    masks: bool = False
    error: Optional[str] = None


def read(root, task, **options):
    return OwnData.from_folder(Options(root, task, **options))


def photos_of(data):
    return list({x.path: x for x in chain(*data.splits.values())}.values())


def number_of(photo):
    return int(re.findall(r'\d+', photo.path.name)[-1])


def unexpected(data, case):
    """Notes that neither the row of a case nor every folder has.

    Names of classes are asked for where the case has none.
    """
    parts = (*USUAL, *case.notes)
    if case.classes[0].startswith('class '):
        parts += (NO_NAMES,)
    return [note for note in map(str, data.notes) if not any(x in note for x in parts)]


def check(case, root, task):
    """Reads the folder of a case, and compares."""
    grow(root, case.tree)
    if case.error:
        with pytest.raises((OSError, ValueError), match=case.error):
            read(root, task, **case.options)
        return None
    data = read(root, task, **case.options)
    assert tuple(len(x) for x in data.splits.values()) == case.photos
    assert data.classes == case.classes
    assert data.has_masks == case.masks
    notes = [str(note) for note in data.notes]
    for part in case.notes:
        assert any(part in note for note in notes), notes
    assert unexpected(data, case) == []
    return data


def doubled(lacking):
    """A COCO file of two objects a photo, the first ones without outlines."""
    content = coco(**OUTLINE)
    others = [
        dict(x, id=x['id'] + 10, bbox=[1, 1, 5, 5]) for x in content['annotations']
    ]
    content['annotations'] += others
    for x in content['annotations'][:lacking]:
        x['segmentation'] = []
    return content


DETECTION = {
    'coco, by split': Case(
        {
            '{split}2017/{i}.jpg': photo,
            'annotations/instances_train2017.json': coco(range(8), **OUTLINE),
            'annotations/instances_val2017.json': coco(
                range(8, 10), categories=NAMES[::-1], **OUTLINE
            ),
            'annotations/person_keypoints_val2017.json': '{',
            '__MACOSX/0.jpg': photo,
        },
        notes=('no test photos: the validation photos are used for testing',),
        masks=True,
    ),
    'coco, a file of all': Case(
        {**IN_IMAGES, 'labels.json': coco(categories=(*NAMES, 'green'), **OUTLINE)},
        notes=(EVERY_FIFTH,),
        masks=True,
    ),
    'coco, boxes': Case({**IN_IMAGES, 'labels.json': coco()}, notes=(EVERY_FIFTH,)),
    'coco, without areas': Case(
        {**IN_IMAGES, 'a.json': coco(area=0, iscrowd=None, segmentation=None)}
    ),
    'coco, flags as text': Case(
        {**IN_IMAGES, 'a.json': coco(iscrowd='0', ignore='false')}
    ),
    'coco, no outlines': Case(
        {**IN_IMAGES, 'a.json': coco(area='?', segmentation=[[]])}
    ),
    'coco, corners for outlines': Case(
        {**IN_IMAGES, 'a.json': coco(area=None, segmentation=[[8, 9, 30, 31]])}
    ),
    'coco, numbers as text': Case(
        {**IN_IMAGES, 'a.json': coco(bbox=[*map(str, BOX)], segmentation=[8, 9] * 3)}
    ),
    'coco, a flat outline': Case(
        {**IN_IMAGES, 'a.json': coco(bbox=[], segmentation=SQUARE)}, masks=True
    ),
    'coco, as cvat writes it': Case(
        {
            **IN_IMAGES,
            'a.json': coco(iscrowd=1, attributes=dict(occluded=False), **OUTLINE),
        },
        masks=True,
    ),
    'coco, pairs of places': Case(
        {
            **IN_IMAGES,
            'a.json': coco(
                bbox=None, segmentation=[np.reshape(SQUARE, (-1, 2)).tolist()]
            ),
        },
        masks=True,
    ),
    'coco, runs': Case(
        {
            **IN_IMAGES,
            'a.json': coco(
                bbox=None,
                segmentation=dict(
                    size=[48, 64], counts=[8 * 48 + 9, *[22, 26] * 21, 22, 34 * 48 + 17]
                ),
            ),
        },
        masks=True,
    ),
    'coco, runs as text': Case(
        {**IN_IMAGES, 'a.json': coco(bbox=None, segmentation=RUNS)}, masks=True
    ),
    'coco, runs of larger photos': Case(
        {
            **IN_IMAGES,
            'a.json': coco(
                bbox=[16, 18, 44, 44],
                image=dict(width=128, height=96),
                segmentation=encode(SQUARE_MASK.repeat(2, 0).repeat(2, 1)),
            ),
        },
        notes=('10 photos have another size than in annotations',),
        masks=True,
    ),
    'coco, runs of resized photos': Case(
        {
            **IN_IMAGES,
            'a.json': coco(
                bbox=[16, 18, 44, 44],
                image=dict(width=128, height=96),
                segmentation=RUNS,
            ),
        },
        notes=('10 photos have another size than in annotations',),
        masks=True,
    ),
    'coco, an area of 1': Case({**IN_IMAGES, 'a.json': coco(area=1)}),
    'coco, keypoints alone': Case(
        {**IN_IMAGES, 'person_keypoints.json': coco(keypoints=[9, 9, 2], **OUTLINE)},
        masks=True,
    ),
    'coco, results': Case(
        {**IN_IMAGES, 'a.json': [dict(image_id=0, bbox=BOX, score=0.9)]},
        error='its a.json is a file of COCO results, .*: take the file of ground truth',
    ),
    'coco, results with masks': Case(
        {**IN_IMAGES, 'a.json': [dict(segmentation=RUNS, image_id=0, score=0.9)]},
        error='its a.json is a file of COCO results, .*: take the file of ground truth',
    ),
    'coco, ids in place of names': Case(
        {**IN_IMAGES, 'a.json': coco(file_name='C:\\my\\images\\{i}.jpg')}
    ),
    'coco, addresses': Case(
        {
            'images/a a\u0308{i}.jpg': photo,
            'a.json': coco(file_name='http://x.org/y/a \u00e4{i}.jpg?z=1'),
        }
    ),
    'coco, names as in addresses': Case(
        {
            'images/a a\u0308{i}.jpg': photo,
            'a.json': coco(file_name='a%20\u00e4{i}.jpg'),
        }
    ),
    'coco, photos of another size': Case(
        {
            **IN_IMAGES,
            'a.json': coco(
                bbox=[16, 18, 44, 44], image=dict(width=2 * SIZE[0], height=2 * SIZE[1])
            ),
        },
        notes=('10 photos have another size than in annotations',),
    ),
    'voc, lists': Case(
        {
            'JPEGImages/a.{i}.png': photo,
            'Annotations/a.{i}.xml': voc,
            'ImageSets/Main/train.txt': '\n'.join(f'a.{i}.png' for i in range(8)),
            'ImageSets/Main/val.txt': 'a.8.png\na.9.png',
        }
    ),
    **{
        f'voc, {kind}': Case(
            {'{i}.jpg': photo, '{i}.xml': partial(voc_outline, outline=outline)},
            masks=True,
        )
        for kind, outline in {
            'numbered places': f'<polygon>{numbered(SQUARE)}</polygon>',
            'numbers in another order': (
                '<polygon><x2>30</x2><x4>8</x4><x1>8</x1><x3>30</x3>'
                '<y3>31</y3><y1>9</y1><y4>31</y4><y2>9</y2></polygon>'
            ),
            'points': f'<polygon>{points(SQUARE)}</polygon>',
            'points with times': (
                f'<polygon><username>me</username>{points(SQUARE, TIME)}</polygon>'
            ),
            'a text': '<segmentation>8,9, 30,9, 30,31 8,31</segmentation>',
        }.items()
    },
    'voc, deleted objects': Case(
        {'{i}.jpg': photo, '{i}.xml': partial(voc_outline, more=DELETED)},
        notes=('ignored 10 shapes: deleted',),
    ),
    'labelme on the web': Case(
        {
            'Images/users/me/{i}.jpg': photo,
            'Annotations/users/me/{i}.xml': partial(
                labelme_web, more=DELETED + LINE + LINE.replace(POINT, '', 1)
            ),
        },
        notes=(
            'ignored 10 shapes: deleted',
            'ignored 10 shapes: line',
            'ignored 10 shapes: point',
        ),
        masks=True,
    ),
    **{
        f'labelme on the web, masks in {masks}': Case(
            {
                f'{photos}/{{i}}.jpg': photo,
                f'{labels}/{{i}}.xml': partial(labelme_web, shape=MASK_IN_PICTURE),
                f'{masks}/{{i}}_mask_0.png': 255 * SQUARE_MASK,
            },
            masks=True,
        )
        for photos, labels, masks in (
            ('Images/me', 'Annotations/me', 'Masks/me'),
            ('default', 'default', 'default/Masks'),
        )
    },
    'labelme on the web, a mask that is missing': Case(
        {'{i}.jpg': photo, '{i}.xml': partial(labelme_web, shape=MASK_IN_PICTURE)},
        error='0.xml: its mask 0_mask_0.png is not there',
    ),
    'voc, beside photos': Case({'{i}.jpg': photo, '{i}.xml': voc}),
    'labelme': Case(
        {'{i}.jpg': photo, '{i}.json': labelme},
        notes=('ignored 10 shapes: point',),
        masks=True,
    ),
    'labelme, lines alone': Case(
        {
            '{i}.jpg': photo,
            '{i}.json': dict(
                shapes=[dict(label='x', points=[[1, 2], [8, 9]], shape_type='line')],
                imagePath='',
            ),
        },
        error='no photo has a box or an outline; it ignored 10 shapes: line',
    ),
    'labelme, masks': Case({'{i}.jpg': photo, '{i}.json': labelme_mask}, masks=True),
    'cvat, a project of subsets': Case(
        {
            'images/Train/{i}.jpg': photo,
            'images/Validation/{i}.jpg': lambda i: photo(i + 10),
            'annotations.xml': cvat()
            .replace('</annotations>', '')
            .replace('name="sub/', 'subset="Train" name="')
            + cvat()
            .replace('<annotations>', '')
            .replace('name="sub/', 'subset="Validation" name="'),
        },
        photos=(10, 10, 10),
        notes=('ignored 20 shapes: polyline',),
        masks=True,
    ),
    'cvat, shapes without a label': Case(
        {**IN_IMAGES, 'annotations.xml': cvat().replace('label="a"', 'label=""')},
        notes=('ignored 10 shapes: without a label',),
        masks=True,
    ),
    'cvat, masks': Case({**IN_IMAGES, 'annotations.xml': cvat_masks()}, masks=True),
    'cvat': Case(
        {**IN_IMAGES, 'annotations.xml': cvat()},
        notes=('ignored 10 shapes: polyline',),
        masks=True,
    ),
    'yolo': Case(
        {**YOLO, **NAMED, 'a.yml': 'names: {me: 1}', 'b.yml': 'x: !y'}, masks=True
    ),
    'yolo, boxes': Case(
        {
            **YOLO,
            'labels/{i}.txt': BOX_LINE,
            'data.yaml': 'train: x\nnames: {0: red, 1: blue}',
            'c.yml': 'names: [me]',
        }
    ),
    'yolo, classes.txt': Case({**YOLO, 'classes.txt': 'red\nblue'}, masks=True),
    'yolo, names as an option': Case(
        YOLO, classes=['red', 'blue'], options=dict(classes=['red', 'blue']), masks=True
    ),
    **{
        f'yolo, {kind}': Case(
            {**IN_IMAGES, 'labels/{i}.txt': partial(with_more, more=more), **NAMED},
            notes=(note,),
        )
        for kind, more, note in (
            ('confidences', (0.9,), 'labels have confidences'),
            ('tracks', (0.9, 1), 'labels have confidences'),
            ('numbers of tracks', (0.9, 7), 'labels have confidences'),
            ('a keypoint', (0.3, 0.4, 2), 'ignored the keypoints'),
            ('keypoints', (0.3, 0.4, 2, 0, 0, 0), 'ignored the keypoints'),
            ('two keypoints', (0.3, 0.4, 0.2, 0.5), 'ignored the keypoints'),
            ('three keypoints', (0.4, 0.25, 0.2, 0.6, 0.42, 0.6), 'ignored the key'),
        )
    },
    'yolo, outlines with confidences': Case(
        {
            **IN_IMAGES,
            'labels/{i}.txt': partial(with_more, more=(0.9,), outline=True),
            **NAMED,
        },
        notes=('labels have confidences',),
        masks=True,
    ),
    'yolo, outlines with tracks': Case(
        {
            **IN_IMAGES,
            'labels/{i}.txt': lambda i: with_more(i, (0.9, i + 1), outline=True),
            **NAMED,
        },
        notes=('labels have confidences',),
        masks=True,
    ),
    'yolo, numbers that are not clear': Case(
        {
            **IN_IMAGES,
            'labels/{i}.txt': partial(with_more, more=(0.9, 1, 0.5)),
            **NAMED,
        },
        error='lines of labels have 8 numbers: .* with a confidence 6',
    ),
    **{
        f'table, {header}': Case(
            {'{i}.jpg': photo, 'a.csv': table(f'filename,{header},class', row)},
            notes=(note,) if note else (),
        )
        for header, row, note in (
            ('x,y,w,h', '{i}.jpg,8,9,22,22,{name}', ''),
            ('x,y,width,height', '{i}.jpg,8,9,22,22,{name}', ''),
            ('x1,y1,w,h', '{i}.jpg,8,9,22,22,{name}', ''),
            (
                'X Center,Y Center,Width,Height,Image Width,Image Height',
                '{i}.jpg,19,20,22,22,64,48,{name}',
                '',
            ),
            (
                'XMin,XMax,YMin,YMax',
                '{i}.jpg,0.125,0.46875,0.1875,0.6458333,{name}',
                '',
            ),
            ('bbox', '{i}.jpg,"[8.0, 9.0, 22.0, 22.0]",{name}', 'x, y, width, height'),
            (
                'place',
                "{i}.jpg,\"{{'xmin': 8, 'ymin': 9, 'xmax': 30, 'ymax': 31}}\",{name}",
                'read as x1, y1, x2, y2',
            ),
            ('bbox_xyxy', '{i}.jpg,8 9 30 31,{name}', 'read as x1, y1, x2, y2'),
            (
                'boxes',
                "{i}.jpg,\"[{{'x': 8, 'height': 22, 'y': 9, 'width': 22}}]\",{name}",
                'x, y, width, height',
            ),
        )
    },
    'photos of another kind': Case({'images/{i}.ppm': photo, 'a.json': coco()}),
    'table, class first': Case(
        {
            '{i}.jpg': photo,
            'a.csv': table(
                'filename,class,xmin,ymin,xmax,ymax', '{i}.jpg,{name},8,9,30,31'
            ),
        }
    ),
    'table, another name of the class': Case(
        {
            '{i}.jpg': photo,
            'a.csv': table(
                'filename,cell_type,x1,y1,x2,y2', '{i}.jpg,{name},8,9,30,31'
            ),
        }
    ),
    'tables of kaggle': Case(
        {
            'train/{i}.jpg': photo,
            'test/t{i}.jpg': lambda i: photo(i + 10),
            'train.csv': table(
                'Width,Height,Roi.X1,Roi.Y1,Roi.X2,Roi.Y2,ClassId,Path',
                '64,48,8,9,30,31,{name},train/{i}.jpg',
            ),
            'test.csv': table('Width,Height,Path', '64,48,test/t{i}.jpg'),
            'sample_submission.csv': table('Path,Roi.X1', 'test/t{i}.jpg,0'),
        },
        notes=('ignored 10 photos without annotations',),
    ),
    'table, no header': Case(
        {'{i}.jpg': photo, 'a.csv': table('', '/a/{i}.jpg,8,9,30,31,{name}')}
    ),
    'via, a project': Case(
        {**IN_IMAGES, 'via.json': {'_via_img_metadata': via(), '_via_settings': {}}},
        notes=('ignored 10 shapes: point',),
        masks=True,
    ),
    'via, exported, by split': Case(
        {
            '{split}/{i}.jpg': photo,
            'train/via_region_data.json': via(range(8), 'rect'),
            'val/via_region_data.json': via(range(8, 10), 'rect'),
        },
        notes=('ignored 10 shapes: point',),
    ),
    'via, a table': Case({'{i}.jpg': photo, 'via.csv': via_table()}),
    'labels of a table that was made from voc files': Case(
        {
            'images/a.{i}.png': photo,
            'xml/a.{i}.xml': voc,
            'all_labels.csv': table('filename,class,xmin', 'a.{i}.png,{name},8'),
            'train_labels.csv': 'filename,class\n'
            + '\n'.join(f'a.{i}.png,x' for i in range(7)),
            'test_labels.csv': 'filename,class\na.7.png,x\na.8.png,x\na.9.png,x',
        },
        photos=(7, 3, 3),
        notes=('no validation photos: the test photos are used for validation',),
    ),
    'a file that another one repeats, and a pattern': Case(
        {**IN_IMAGES, 'a.json': coco(), 'b/{i}.xml': voc}, options=dict(labels='*.xml')
    ),
    'a file in a folder, by its name': Case(
        {**IN_IMAGES, 'x/y/a.json': coco(), 'x/b.json': coco()},
        options=dict(labels='a.json'),
    ),
    'folders in each split, by their name': Case(
        {
            '{split}/images/{i}.jpg': photo,
            '{split}/labels/{i}.txt': BOX_LINE,
            '{split}/old/{i}.xml': voc,
            **NAMED,
        },
        options=dict(labels='labels'),
    ),
    'a few objects without outlines': Case(
        {'{i}.jpg': photo, 'a.json': doubled(lacking=1)},
        notes=('1 of 20 objects have boxes without outlines: it takes their boxes',),
        masks=True,
    ),
    'more objects without outlines': Case(
        {'{i}.jpg': photo, 'a.json': doubled(lacking=3)},
        notes=(
            '3 of 20 objects have boxes without outlines: it takes the boxes of all',
        ),
    ),
    'photos without objects': Case(
        {'{i}.jpg': photo, 'a.json': coco(), '{i}.txt': '', 'labels.txt': '?'},
        options=dict(labels='a.json'),
    ),
    'test for a folder of all': Case({'test/{i}.jpg': photo, 'a.json': coco()}),
    'validated and test_project': Case(
        {'test_project/{i}.jpg': photo, 'validated.json': coco()}
    ),
    'two photos, one held back': Case(
        {'0.jpg': photo(0), '1.jpg': photo(1), 'a.json': coco(range(2))},
        photos=(1, 1, 1),
        classes=['blue'],
        notes=('ignored classes that no photo for training has: red',),
    ),
    'one photo': Case({'0.jpg': photo(0), 'a.json': coco([0])}, error='too few photos'),
    'two photos of one name, by the path': Case(
        {
            **IN_IMAGES,
            'more/{i}.jpg': photo,
            'a.json': coco(file_name='images/{i}.jpg'),
        },
        notes=('ignored 10 photos without annotations',),
    ),
    'two photos of one name': Case(
        {'a/{i}.jpg': photo, 'b/{i}.jpg': photo, 'a.json': coco()},
        error='name of several photos, .*--images',
    ),
    'two photos of one name, by an option': Case(
        {'a/{i}.jpg': photo, 'b/{i}.jpg': photo, 'a.json': coco()},
        options=dict(images='a'),
    ),
    'no such place': Case(
        {**IN_IMAGES, 'a.json': coco()},
        options=dict(labels='b.json'),
        error='--labels .*b.json: there is no such place',
    ),
    'boxes beside photos': Case(
        {**IN_IMAGES, 'a.json': coco(bbox=[64, 9, 22, 22])},
        error='all 10 boxes have less than a pixel in their photo',
    ),
    'corners in place of sides': Case(
        {**IN_IMAGES, 'a.json': coco(bbox=[8, 9, 80, 22])},
        notes=('10 boxes reach far over the edge',),
    ),
    'photos that are missing': Case(
        {**IN_IMAGES, 'a.json': coco(range(11), file_name='images/{i}.jpg')},
        error='1 of 11 photos with annotations are missing in .*10.jpg',
    ),
    'no labels': Case(IN_IMAGES, error='it has 10 photo files: mmlinattn predict'),
    'damaged json': Case(
        {**IN_IMAGES, 'labels.json': '{'}, error='labels.json: Expect'
    ),
    'an id that is there twice': Case(
        {**IN_IMAGES, 'a.json': {**coco(), 'categories': [dict(id=5, name='x')] * 2}},
        error='two of its categories have the id 5',
    ),
    'a category that is not there': Case(
        {**IN_IMAGES, 'a.json': coco(category_id=9)}, error=r'y \(9\) is not in'
    ),
    'labels of pixels that EXIF data rotate': Case(
        {'{i}.jpg': exif('jpeg'), 'a.json': coco(image=dict(width=64, height=48))},
        error='has 64 x 48 pixels, as .*, and its EXIF data rotate it to 48 x 64: .*ex',
    ),
    'photos that were turned': Case(
        {**IN_IMAGES, 'a.json': coco(image=dict(width=48, height=64))},
        error='64 x 48 pixels.* says 48 x 64: ',
    ),
    'crowds': Case({**IN_IMAGES, 'a.json': coco(iscrowd=1)}, error='are crowds'),
    'no box': Case(
        {**IN_IMAGES, 'a.json': coco(bbox=None)},
        error='a.json: annotation 0 has no box',
    ),
    'a box of no number': Case(
        {**IN_IMAGES, 'a.json': coco(bbox=[1, 2, 3, 'nan'])}, error='0 has no box'
    ),
    'an outline that is text': Case(
        {**IN_IMAGES, 'a.json': coco(segmentation='8 9')}, error='is text, not a list'
    ),
    'two files of the same photos': Case(
        {**IN_IMAGES, 'a.json': coco(), 'b.json': coco()},
        error=r'same photos, such as .*0.jpg: .*a.json and .*b.json; --labels',
    ),
    'yolo, other names in two files': Case(
        {**YOLO, **NAMED, 'other.yaml': 'nc: 1\nnames: [me]'},
        error='its names are not those of',
    ),
    'yolo, a damaged yaml': Case(
        {**YOLO, 'data.yaml': 'nc: 2\nnames: [red, blue]\n : x'},
        error='data.yaml: while parsing',
    ),
    'via, several attributes': Case(
        {**IN_IMAGES, 'via.json': via()},
        options=dict(column='sort'),
        error='which attribute of a region has the class.* one of Class, remark',
    ),
}


@pytest.mark.parametrize('name', DETECTION)
def test_objects(tmp_path, name):
    """Each photo has the square of its color, and nothing else."""
    case = DETECTION[name]
    data = check(case, tmp_path / 'my', 'det')
    if not data or 'objects without' in name or 'corners in place' in name:
        return
    for x in photos_of(data):
        (item,) = x.objects
        assert item.name == name_of(number_of(x)) and not item.is_crowd
        assert item.bbox == pytest.approx(BOX) and item.area == pytest.approx(484)
        assert (item.outline is not None) == case.masks
        if case.masks:
            assert np.array_equal(item.outline.mask(SIZE), SQUARE_MASK)
    write(data, tmp_path / 'out')
    content = json.loads((tmp_path / 'out/train.json').read_text())
    names = {x['id']: x['name'] for x in content['categories']}
    assert list(names.values()) == data.classes
    assert len(content['images']) == len(content['annotations'])
    for image, x in zip(content['images'], content['annotations']):
        path = tmp_path / 'my' / image['file_name']
        number = int(re.findall(r'\d+', path.name)[-1])
        assert path.is_file() and (image['width'], image['height']) == SIZE
        assert x['image_id'] == image['id'] and x['bbox'] == pytest.approx(BOX)
        assert names[x['category_id']] == name_of(number) and x['iscrowd'] == 0
        assert ('segmentation' in x) == case.masks


def test_voc_difficult_objects_are_crowds(tmp_path):
    more = voc(1, name='blue').replace('<bndbox>', '<difficult>1</difficult><bndbox>')
    more = re.search('<object>.*</object>', more, re.S)[0]
    grow(tmp_path, {'{i}.jpg': photo, '{i}.xml': partial(voc, more=more)})
    for x in photos_of(read(tmp_path, 'det')):
        assert [item.is_crowd for item in x.objects][-1]


# a rectangle of 24 x 10 pixels around (24, 24), turned clockwise by 30 degrees
CENTER, SIDES, TURN = (24.0, 24.0), (24.0, 10.0), np.pi / 6
TURNED = [16.108, 13.67, 36.892, 25.67, 31.892, 34.33, 11.108, 22.33]
X, Y, W, H = *CENTER, *SIDES
UPRIGHT = [X - W / 2, Y - H / 2, X + W / 2, Y + H / 2]
CORNERS = np.reshape(TURNED, (-1, 2)).tolist()


def spaced(places):
    return ' '.join(map(str, places))


def turned_cvat():
    box = ' '.join(f'{k}="{v}"' for k, v in zip(('xtl', 'ytl', 'xbr', 'ybr'), UPRIGHT))
    images = [
        f'<image name="{i}.jpg"><box label="{name_of(i)}" {box} rotation="30.0"/>'
        '</image>'
        for i in range(10)
    ]
    return f'<annotations>{"".join(images)}</annotations>'


def turned_voc(i, keys, places):
    inner = ''.join(f'<{key}>{place}</{key}>' for key, place in zip(keys, places))
    return (
        f'<annotation><object><type>robndbox</type><name>{name_of(i)}</name>'
        f'<robndbox>{inner}</robndbox></object></annotation>'
    )


def turned_labelme(i, kind):
    shape = dict(label=name_of(i), points=CORNERS, shape_type=kind)
    return dict(shapes=[shape], imagePath=f'{i}.jpg')


COCO_BOX = [X - W / 2, Y - H / 2, W, H]
AROUND = [11.108, 13.67, 25.784, 20.66]
TURNED_FILES = {
    'DOTA': {
        'labelTxt/{i}.txt': lambda i: (
            f'imagesource:GoogleEarth\ngsd:0.1\n{spaced(TURNED)} {name_of(i)} 1\n'
        )
    },
    "YOLO's oriented boxes": {
        'labels/{i}.txt': lambda i: (
            f'{i % 2} {spaced((np.array(CORNERS) / SIZE).ravel())}'
        ),
        'data.yaml': 'names: [red, blue]',
    },
    'CVAT': {'a.xml': turned_cvat()},
    'CVAT as COCO': {
        'a.json': coco(bbox=COCO_BOX, attributes=dict(occluded=False, rotation=30.0))
    },
    'COCO': {'a.json': coco(bbox=AROUND, segmentation=[TURNED])},
    'labelme': {'labels/{i}.json': partial(turned_labelme, kind='oriented_rectangle')},
    'X-AnyLabeling': {'labels/{i}.json': partial(turned_labelme, kind='rotation')},
    'roLabelImg': {
        'labels/{i}.xml': partial(
            turned_voc, keys=('cx', 'cy', 'w', 'h', 'angle'), places=[X, Y, W, H, TURN]
        )
    },
    'DIOR': {
        'labels/{i}.xml': partial(turned_voc, keys=tuple('abcdefgh'), places=TURNED)
    },
}


@pytest.mark.parametrize('name', TURNED_FILES)
def test_rotated_boxes(tmp_path, name):
    """Each object has its corners in a COCO file, and the box around them for det."""
    tree = {'images/{i}.jpg': photo, **TURNED_FILES[name]}
    data = read(grow(tmp_path / 'my', tree), 'rot')
    write(data, tmp_path / 'out')
    content = json.loads((tmp_path / 'out/train.json').read_text())
    assert len(content['annotations']) == 8 and data.classes == BOTH
    for entry in content['annotations']:
        (corners,) = entry['segmentation']
        places = np.reshape(corners, (-1, 2))
        distances = np.linalg.norm(places[:, None] - CORNERS, axis=-1)
        assert distances.min(0).max() < 0.01 and distances.min(1).max() < 0.01
    for x in photos_of(read(tmp_path / 'my', 'det')):
        x, y, width, height = x.objects[0].bbox
        ends = [x, y, x + width, y + height]
        assert ends == pytest.approx([11.108, 13.67, 36.892, 34.33], abs=0.01)


def test_rotated_boxes_of_other_outlines(tmp_path):
    """Polygons and run lengths get the smallest rectangle, boxes stay as they are."""
    runs = dict(size=[48, 64], counts=[48 * 10 + 8, *[20, 28] * 9, 20, 48 * 44 + 20])
    outlines = [dict(segmentation=[[30, 10, 40, 20, 30, 30, 20, 20, 21, 20]])]
    outlines += [dict(segmentation=runs), dict(bbox=[2, 3, 4, 5])]
    content = coco()
    for i, entry in enumerate(content['annotations']):
        entry.update(outlines[i % 3])
    data = read(grow(tmp_path, {**IN_IMAGES, 'a.json': content}), 'rot')
    assert 'learned without a rotation' in str(data.notes)
    expected = [[30, 10, 40, 20, 30, 30, 20, 20], [10, 8, 20, 8, 20, 28, 10, 28]]
    expected.append([2, 3, 6, 3, 6, 8, 2, 8])
    for x in photos_of(data):
        corners = np.reshape(x.objects[0].outline.polygons[0], (-1, 2))
        wanted = np.reshape(expected[number_of(x) % 3], (-1, 2))
        assert np.linalg.norm(corners[:, None] - wanted, axis=-1).min(0).max() < 0.01


def test_rotated_boxes_that_cross(tmp_path):
    """Two of them may have the same box around them; boxes without any are for det."""
    lines = '9 9 10 9 30 29 29 29 red 0\n30 9 30 10 10 29 9 29 red 0\n'
    lines += '9 9 10 9 30 29 29 29 red 0\n'
    tree = {**IN_IMAGES, 'labelTxt/{i}.txt': lines}
    data = read(grow(tmp_path / 'a', tree), 'rot')
    assert {len(x.objects) for x in photos_of(data)} == {2}
    with pytest.raises(ValueError, match='boxes without outlines: they are for --task'):
        read(grow(tmp_path / 'b', {**IN_IMAGES, 'a.json': coco()}), 'rot')
    tree['labelTxt/{i}.txt'] = '1 2 3 4 5 6 7 8 red 0\n9 9 10 9 30 29 29 red 0'
    with pytest.raises(ValueError, match="line 2 is not DOTA's"):
        read(grow(tmp_path / 'c', tree), 'rot')


def test_repeated_objects_and_boxes_outside(tmp_path):
    content = coco()
    content['annotations'] += [dict(x, id=99) for x in content['annotations'][:3]]
    content['annotations'][8]['bbox'] = [64, 9, 22, 22]
    content['annotations'][9]['bbox'] = [8, 9, 0, 22]
    data = read(grow(tmp_path, {**IN_IMAGES, 'a.json': content}), 'det')
    notes = [str(note) for note in data.notes]
    assert any('ignored 3 duplicate objects' in x for x in notes)
    assert any('ignored 2 boxes of less than a pixel' in x for x in notes)
    assert sum(len(x.objects) for x in photos_of(data)) == 8
    rows = {name: values for name, *values in data.overview()}
    assert sum(map(int, rows['without objects'][:2])) == 2


def test_circles_and_groups_of_labelme(tmp_path):
    circle = dict(label='red', points=[[30, 20], [40, 20]], shape_type='circle')
    parts = [[[1, 1], [9, 1], [9, 9]], [[20, 1], [29, 1], [29, 9]]]
    group = [dict(label='red', points=points, group_id=1) for points in parts]
    content = dict(shapes=[circle, *group], imagePath='x')
    grow(tmp_path, {'{i}.jpg': photo, '{i}.json': content})
    first, second = photos_of(read(tmp_path, 'det'))[0].objects
    assert first.bbox == pytest.approx([20, 10, 20, 20])
    assert second.bbox == (1, 1, 28, 8) and len(second.outline.polygons) == 2


CVAT_SHAPES = """<annotations><image name="0.jpg" width="64" height="48">
<box label="red" xtl="8" ytl="9" xbr="30" ybr="31"/>
<mask label="red" left="1" top="2" width="3" height="4" rle="1"/>
<ellipse label="red" cx="30" cy="20" rx="10" ry="5"/><tag label="red"/></image>
<image name="1.jpg"/></annotations>"""


def test_shapes_of_cvat(tmp_path):
    tree = {'0.jpg': photo(0), '1.jpg': photo(1), 'a.xml': CVAT_SHAPES}
    data = read(
        grow(tmp_path, {**tree, 'train.txt': '0.jpg', 'val.txt': '1.jpg'}), 'det'
    )
    boxes = [item.bbox for item in data.splits['train'][0].objects]
    assert boxes[:2] == [tuple(BOX), (1, 2, 3, 4)]
    assert boxes[2] == pytest.approx((20, 15, 20, 10))
    assert 'it takes the boxes of all' in str(data.notes[0])


def test_shapes_of_via(tmp_path):
    """Regions without attributes are of one class; ticked ones have theirs."""
    circle = dict(name='circle', cx=30, cy=20, r=10)
    ellipse = dict(name='ellipse', cx=30, cy=20, rx=10, ry=5, theta=np.pi / 2)
    shapes = [dict(shape_attributes=x, region_attributes={}) for x in (circle, ellipse)]
    entries = {f'{i}': dict(filename=f'{i}.jpg', regions=shapes) for i in range(10)}
    data = read(grow(tmp_path, {'{i}.jpg': photo, 'via.json': entries}), 'det')
    first, second = photos_of(data)[0].objects
    assert first.bbox == pytest.approx((20, 10, 20, 20)) and data.classes == ['object']
    assert second.bbox == pytest.approx((25, 10, 10, 20))
    for shape in shapes:
        shape['region_attributes'] = dict(kind=dict(cat=True, dog=False))
    regions = {str(i): shape for i, shape in enumerate(shapes)}  # as old files have it
    entries = {f'{i}': dict(filename=f'{i}.jpg', regions=regions) for i in range(10)}
    assert read(grow(tmp_path, {'via.json': entries}), 'det').classes == ['cat']
    shapes[1]['region_attributes'] = {}
    grow(tmp_path, {'via.json': entries})
    with pytest.raises(
        ValueError, match=r'via.json: annotation 1 of 0.jpg has no box, or'
    ):
        read(tmp_path, 'det')


def test_links_in_a_circle(tmp_path):
    grow(tmp_path, {**IN_IMAGES, 'a.json': coco()})
    (tmp_path / 'images/again').symlink_to(tmp_path)
    assert len(photos_of(read(tmp_path, 'det'))) == 10


def test_labels_are_no_lists(tmp_path):
    """Those of photos that are called test1, whatever the name of photo 1 is."""
    tree = {'test0.jpg': photo, 'test1.jpg': photo, '{i}.jpg': photo}
    labels = {path.replace('jpg', 'txt'): '1 .3 .4 .3 .4' for path in tree}
    data = read(grow(tmp_path, {**tree, **labels}, range(8)), 'det')
    assert [len(x) for x in data.splits.values()] == [8, 2, 2]
    assert not any('it has no photos of' in str(note) for note in data.notes)


@pytest.mark.parametrize(
    'tree, name, content, message',
    [
        ({**YOLO, **NAMED}, 'labels/9.txt', '7 .3 .4 .3 .4', 'class 7 has no name'),
        (
            {**YOLO, **NAMED},
            'labels/9.txt',
            '0 30 20 20 20',
            '30 is no part of the side',
        ),
        (
            {**YOLO, **NAMED},
            'labels/9.txt',
            '\n0 .3 .4 .3',
            "line 2 is neither YOLO's `class x y w h` nor DOTA's",
        ),
        (
            {**YOLO, **NAMED},
            'labels/9.txt',
            'gsd:0.1\n8 9 30 9 30 31 8 31 7 red 0',
            "line 2 is not DOTA's `x1 y1 ... x4 y4 class difficult`",
        ),
        ({'{i}.jpg': photo, '{i}.json': labelme}, '7.json', '{"a', 'Unterminated'),
        ({'{i}.jpg': photo, '{i}.xml': voc}, '7.xml', '<annotation>', 'ParseError'),
    ],
)
def test_a_damaged_file_costs_its_photo(tmp_path, tree, name, content, message):
    grow(tmp_path, tree)
    (tmp_path / name).write_text(content)
    data = read(tmp_path, 'det')
    (note,) = (str(x) for x in data.notes if 'files that are damaged' in str(x))
    assert len(photos_of(data)) == 9
    assert '1 annotation' in note and name in note and message in note
    (tmp_path / name.replace('7', '6').replace('9', '8')).write_text(content)
    with pytest.raises(ValueError, match=message):
        read(tmp_path, 'det')


@pytest.mark.parametrize(
    'line, encoding',
    [
        ('p {}', 'utf-8'),
        ('p {}.jpg', 'utf-8-sig'),
        ('p {}  1', 'utf-16'),
        ('C:\\x\\images\\p {}.jpg', 'latin-1'),
        ('"p {}.jpg",red', 'utf-8'),
    ],
)
def test_lists_of_any_kind(tmp_path, line, encoding):
    """Names with blanks, marks at the begin, separators of Windows."""
    ending = 'csv' if ',' in line else 'txt'
    tree = {'images/p {i}.jpg': photo, 'a.json': coco(file_name='p {i}.jpg')}
    for split, numbers in dict(train=range(7), val=range(7, 10)).items():
        text = '\r\n'.join(map(line.format, numbers))
        tree[f'{split}.{ending}'] = text.encode(encoding)
    splits = read(grow(tmp_path, tree), 'det').splits
    assert [number_of(x) for x in splits['val']] == [7, 8, 9]
    assert len(splits['train']) == 7


# ------------------------------------------------------------------ label maps
GROUND = ['class 0', 'class 1']
GRAY_IDS = {'images/{i}.jpg': photo, 'masks/{i}.png': label_map(0, 1)}
COLORED = {
    'images/{i}.png': photo,
    'masks/{i}.png': color_map((9, 0, 200), (128, 64, 0)),
}
COLOR_TABLE = 'name,r,g,b\nsky,9,0,200\nroad,128,64,0\n'


def tiff(*ids):
    """The bytes of a label map of 32 bits."""
    pixels = label_map(
        *ids, dtype=np.float32 if any(isinstance(i, float) for i in ids) else np.int32
    )
    return cv2.imencode('.tif', pixels)[1].tobytes()


def roboflow(*names):
    return 'Pixel Value, Class\n' + '\n'.join(f'{i}, {x}' for i, x in enumerate(names))


SQUARE_ID = dict(id=12, name='square')

SEGMENTATION = {
    'folders in splits': Case(
        {'{split}/{i}.png': photo, '{split}annot/{i}.png': label_map(0, 1, 11)},
        classes=GROUND,
        options=dict(ignore=[11]),
        notes=('label maps have no names',),
    ),
    'black and white, and objects': Case(
        {
            'images/x_{i}.jpg': photo,
            'masks/x_{i}_mask.png': label_map(0, 255),
            'SegmentationObject/x_{i}.png': label_map(0, 1),
        },
        classes=['class 0', 'class 255'],
        notes=('only 0 and 255', 'ignored 10 label maps of objects or colors'),
    ),
    **{
        f'{image}, {mask}': Case(
            {image: photo, mask: label_map(0, 1)}, classes=GROUND, notes=tuple(notes)
        )
        for image, mask, *notes in (
            ('images/{i}.jpg', 'masks/mask_{i}.png'),
            ('images/image_{i}.jpg', 'masks/mask_{i}.png'),
            ('x{i}.jpg', 'mask_x{i}.png'),
            ('x{i}.jpg', 'x{i}_seg.png'),
            ('x{i}.JPG', 'x{i}.png', PNG),
            ('images/{i}_image.jpg', 'annotations/{i}_annotation.png'),
            ('{i}_sat.jpg', '{i}_mask.png'),
            ('img/a_{i}_leftImg8bit.png', 'gtFine/a_{i}_gtFine_labelIds.png'),
            ('frames/frame_{i}.jpg', 'truth/manual_{i}.png', ONE_VIDEO),
            ('ISIC_Data/ISIC_{i}.jpg', 'ISIC_GroundTruth/ISIC_{i}_segmentation.png'),
            ('images/washington/{i}.jpg', 'groundtruth/washington/{i}.png'),
            ('scans/{i} (1).jpg', 'scans/{i} (1)_mask.png'),
            ('mask_data/images/{i}.jpg', 'mask_data/masks/{i}.png'),
            ('{i}.jpg', '{i}_1st.png', PNG),
            ('{i}.bmp', '{i}_anno.bmp'),
            ('top_{i}_RGB.tif', 'labels/top_{i}_label.tif'),
            ('img/{i}.jpg', 'masks_machine/{i}.jpg.png'),
        )
    },
    'a folder that an option names': Case(
        {'images/{i}.jpg': photo, 'object_masks/{i}.png': label_map(0, 1)},
        classes=GROUND,
        options=dict(images='images', masks='object_masks'),
    ),
    'a folder in each split that an option names': Case(
        {'{split}/a/{i}.jpg': photo, '{split}/b/{i}.png': label_map(0, 1)},
        classes=GROUND,
        options=dict(masks='b'),
    ),
    'one of two folders of label maps': Case(
        {
            'images/{i}_image.png': photo,
            'annotations/{i}_annotation.png': label_map(0, 1),
            'masks/{i}_mask.png': label_map(1, 0),
        },
        classes=GROUND,
        options=dict(masks='annotations'),
        notes=('ignored 10 photos without annotations',),
    ),
    "ids, by datumaro's table": Case(
        {**GRAY_IDS, 'dataset_meta.json': dict(label_map={'0': 'sky', '1': 'road'})},
        classes=['sky', 'road'],
        notes=('names of classes are those of',),
    ),
    "colors, by datumaro's table": Case(
        {
            **COLORED,
            'dataset_meta.json': dict(
                label_map={'0': 'sky', '7': 'road'},
                segmentation_colors=[[9, 0, 200], [128, 64, 0]],
            ),
        },
        classes=['sky', 'road'],
    ),
    'numbers of objects': Case(
        {'images/{i}.jpg': photo, 'object_masks/{i}.png': label_map(0, 1)},
        error='numbers of objects, not of classes: --masks object_masks',
    ),
    'numbers of instances': Case(
        {
            'img/a_{i}_leftImg8bit.png': photo,
            'gtFine/a_{i}_gtFine_instanceIds.png': label_map(0, 7),
        },
        error=r'numbers of objects, not of classes: --masks \*instanceIds.png',
    ),
    'numbers of instances that an option names': Case(
        {
            'img/a_{i}_leftImg8bit.png': photo,
            'gtFine/a_{i}_gtFine_instanceIds.png': label_map(0, 1),
        },
        classes=GROUND,
        options=dict(masks='*instanceIds.png'),
    ),
    'photos and label maps with the word instance': Case(
        {'images/instance_{i}.jpg': photo, 'masks/instance_{i}.png': label_map(0, 1)},
        classes=GROUND,
    ),
    'colors and objects beside': Case(
        {
            'img/{i}_leftImg8bit.png': photo,
            'gt/{i}_gtFine_labelIds.png': label_map(0, 1),
            'gt/{i}_gtFine_instanceIds.png': label_map(0, 7),
            'gt/{i}_gtFine_color.png': color_map((9, 0, 200), (128, 64, 0)),
        },
        classes=GROUND,
        notes=('ignored 20 label maps of objects or colors',),
    ),
    'several label maps of a photo': Case(
        {**GRAY_IDS, 'masks/{i}_left.png': label_map(0, 1)},
        error='same photos, such as .*0.jpg: .*0.png and .*0_left.png; .*--masks',
    ),
    'defects of MVTec AD': Case(
        {
            'screw/train/good/{i}.png': photo,
            'screw/test/good/{i}.png': lambda i: photo(i + 10),
            'screw/test/scratch/{i}.png': lambda i: photo(i + 20),
            'screw/ground_truth/scratch/{i}_mask.png': label_map(0, 255, 0),
        },
        classes=['class 0', 'class 255'],
        notes=('only 0 and 255', 'ignored 20 photos without annotations'),
    ),
    'names that do not fit': Case(
        {'images/p{i}.jpg': photo, 'masks/{i}.png': label_map(0, 1)},
        error=r'10 of 10 label maps have no .*masks/0.png; .*called images/p0.jpg',
    ),
    'depths of the same names': Case(
        {**GRAY_IDS, 'depth/{i}.jpg': photo},
        classes=GROUND,
        notes=('ignored 10 photos without annotations',),
    ),
    'depths beside another folder': Case(
        {'left/{i}.jpg': photo, 'depth/{i}.jpg': photo, **MASKS}, error='several photos'
    ),
    'outlines of labelme': Case(
        {'{i}.jpg': photo, '{i}.json': labelme},
        classes=['background', *BOTH],
        notes=(DRAWN, 'ignored 10 shapes: point'),
    ),
    'outlines of cvat': Case(
        {**IN_IMAGES, 'annotations.xml': cvat()},
        classes=['background', *BOTH],
        notes=(DRAWN, 'ignored 10 shapes: polyline'),
    ),
    'outlines of yolo': Case(
        {**YOLO, **NAMED}, classes=['background', *BOTH], notes=(DRAWN,)
    ),
    'boxes': Case(
        {**IN_IMAGES, 'a.json': coco()}, error='10 objects have boxes without outlines'
    ),
    'a table of colors': Case(
        {**COLORED, 'class_dict.csv': COLOR_TABLE}, classes=['sky', 'road']
    ),
    'a table of colors with numbers': Case(
        {
            **COLORED,
            'colors.txt': 'no R G B\n1\t9\t0\t200\tsky\n2 \t128\t64 \t0\troad\n',
        },
        classes=['sky', 'road'],
    ),
    'a table of colors, one of no label': Case(
        {
            'images/{i}.png': photo,
            'labels/{i}_L.png': lambda i: color_map((9, 0, 200), (128, 64, 0)),
            'label_colors.txt': '9 0 200\tsky\n128 64 0\troad\n0 0 0\tVoid\n',
        },
        classes=['sky', 'road'],
        notes=('Void is no label; with --classes, its name is a class',),
    ),
    'a table of colors beside ids': Case(
        {
            **GRAY_IDS,
            'class_dict.csv': 'name, r, g, b\nground,9,0,200\nroad,128,64,0\n',
        },
        classes=['ground', 'road'],
        notes=('names of classes are those of',),
    ),
    'colors without names': Case(
        COLORED, error=r'have colors, 9,0,200 \(84.2%\); 128,64,0'
    ),
    'colors as an option': Case(
        COLORED, classes=['a', 'b'], options=dict(colors=['a=9,0,200', 'b=128,64,0'])
    ),
    'names of roboflow': Case(
        {
            '{split}/x_{i}.jpg': photo,
            '{split}/x_{i}_mask.png': label_map(0, 1),
            'train/_classes.csv': roboflow('ground', 'square', 'sky'),
            'val/_classes.csv': roboflow('ground', 'square', 'sky'),
        },
        classes=['ground', 'square', 'sky'],
    ),
    'an id that roboflow does not name': Case(
        {
            **IN_IMAGES,
            'masks/{i}.png': label_map(0, 1, 2),
            '_classes.csv': roboflow('ground', 'square'),
        },
        error='have the id 2, which no _classes.csv names: --ignore 2',
    ),
    'other names of roboflow': Case(
        {
            '{split}/x_{i}.jpg': photo,
            '{split}/x_{i}_mask.png': label_map(0, 1),
            'train/_classes.csv': roboflow('ground', 'square'),
            'val/_classes.csv': roboflow('square', 'ground'),
        },
        error='id 0 is square, and ground in another',
    ),
    'an ignored id beside one that does not occur': Case(
        {**IN_IMAGES, 'masks/{i}.png': label_map(1, 2, 0)},
        classes=['land', 'water', 'ice'],
        options=dict(classes=['land', 'water', 'ice'], ignore=[0]),
    ),
    'other ids than names': Case(
        {**IN_IMAGES, 'masks/{i}.png': label_map(0, 1, 11)},
        options=dict(classes=['a', 'b']),
        error=r'11 \(8.3%\), and --classes 2 names',
    ),
    'one id': Case(
        {**IN_IMAGES, 'masks/{i}.png': label_map(0, 0)}, error='only, class 0'
    ),
    'ids of fractions': Case(
        {**IN_IMAGES, 'masks/{i}.tif': tiff(0, 0.5)}, error='0.5, and no ids from 0 to'
    ),
    'ids of one bit': Case(
        {**IN_IMAGES, 'masks/{i}.png': label_map(0, 1, dtype=bool)}, classes=GROUND
    ),
    'whole numbers of floats': Case(
        {**IN_IMAGES, 'masks/{i}.tif': tiff(0, 1, 0.0)}, classes=GROUND
    ),
    'no number': Case(
        {**IN_IMAGES, 'masks/{i}.tif': tiff(0, 0.5, float('nan'))},
        error='has nan, and no',
    ),
    'ids below 0': Case(
        {**IN_IMAGES, 'masks/{i}.tif': tiff(0, -1)},
        error='-1, and no ids from 0 to 65535; --ignore -1',
    ),
    'ids below 0 that are ignored': Case(
        {**IN_IMAGES, 'masks/{i}.tif': tiff(0, 1, -1)},
        classes=GROUND,
        options=dict(ignore=[-1]),
    ),
    'large ids': Case(
        {**IN_IMAGES, 'masks/{i}.tif': tiff(0, 70000)}, error='70000, and no ids from 0'
    ),
    'many ids': Case(
        {
            **GRAY_IDS,
            'masks/0.png': np.arange(64 * 48, dtype=np.uint16).reshape(48, 64),
        },
        error=r'have the ids 0 \(.*49 \(0.0%\), and --classes 0 names',
    ),
    'maps of another size': Case(
        {**GRAY_IDS, 'masks/0.png': label_map(0, 1, size=(60, 40))},
        error=r'0.png, \(40, 60\) instead of \(48, 64\): --resize-',
    ),
    'maps of another size, resized': Case(
        {**IN_IMAGES, 'masks/{i}.png': label_map(0, 1).repeat(2, 0).repeat(2, 1)},
        classes=GROUND,
        options=dict(resize_masks=True),
        notes=('10 label maps have another size', 'it resizes them'),
    ),
    'an id that --classes names, 255': Case(
        {**IN_IMAGES, 'masks/{i}.png': label_map(0, 128, 255)},
        classes=['rest', 'disc', 'cup'],
        options=dict(classes=['rest', 'disc', 'cup']),
        notes=('255 is a class, because --classes names 3, as many',),
    ),
    '255 that an option takes': Case(
        {**IN_IMAGES, 'masks/{i}.png': label_map(0, 1, 255)},
        classes=['class 0', 'class 1', 'class 255'],
        options=dict(use_255=True),
        notes=(NO_NAMES,),
    ),
    '255 beside names that do not all occur': Case(
        {**IN_IMAGES, 'masks/{i}.png': label_map(0, 1, 255)},
        classes=['a', 'b', 'c'],
        options=dict(classes=['a', 'b', 'c']),
    ),
    '255 beside gray levels': Case(
        {**IN_IMAGES, 'masks/{i}.png': label_map(0, 128, 255)},
        classes=['class 0', 'class 128'],
        notes=(NO_NAMES, 'id 255 is no label; --use-255 treats it as a class'),
    ),
    'a folder for each class': Case(
        {
            **IN_IMAGES,
            'masks/square/{i}_s.png': label_map(0, 255, 0),
            'masks/top/{i}_t.png': label_map(0, 0, 1),
        },
        classes=['background', 'square', 'top'],
        notes=('folders of masks are classes: square, top', DRAWN),
    ),
    'a folder for each class, more numbers': Case(
        {
            **IN_IMAGES,
            'masks/square/{i}.png': label_map(0, 255, 0),
            'masks/top/{i}.png': label_map(0, 1, 2),
        },
        error='masks/top/0.png: the mask of a class has 3 numbers, and not two',
    ),
    **{
        f'names in {file}': Case(
            {**IN_IMAGES, 'masks/{i}.png': label_map(2, 12), file: table},
            classes=['ground', 'square'],
            notes=('names of classes are those of',),
        )
        for file, table in {
            'labels.txt': '0: unlabeled\n2: ground\n12: square\n181: wall',
            'label_names.txt': 'ground 2\nsquare 12',
            'classes.json': {'2': 'ground', '12': 'square'},
            'info/label_map.json': {'ground': 2, 'square': 12},
            'categories.json': dict(categories=[dict(id=2, name='ground'), SQUARE_ID]),
            'labels.csv': 'id,name\n2,ground\n12,square',
            'objectInfo.csv': 'Idx,Ratio,Name\n2,0.5,ground\n12,0.5,square',
            'classes.csv': '2;ground\n12;square',
            'data_classes.yaml': 'names: {2: ground, 12: square}',
        }.items()
    },
    'names in a list': Case(
        {
            **IN_IMAGES,
            'masks/{i}.png': label_map(0, 1),
            'codes.txt': 'ground\nsquare\nx',
        },
        classes=['ground', 'square'],
        notes=('codes.txt, of which 1 occur in no label map',),
    ),
    'names in a list of labelme': Case(
        {
            **IN_IMAGES,
            'masks/{i}.png': label_map(0, 1, 255),
            'class_names.txt': '__ignore__\n_background_\nsquare',
        },
        classes=['_background_', 'square'],
        notes=('names of classes are those of',),
    ),
    'names of what is no label': Case(
        {
            **IN_IMAGES,
            'masks/{i}.png': label_map(1, 2, 0),
            'labels.txt': 'Void\nground\nsquare',
        },
        classes=['ground', 'square'],
        notes=('labels.txt; Void is no label',),
        options=dict(),
    ),
    'names of other ids': Case(
        {**IN_IMAGES, 'masks/{i}.png': label_map(0, 1), 'labels.txt': 'x 7\ny 8'},
        classes=GROUND,
        notes=(NO_NAMES, 'labels.txt names no id 0, and is not used'),
    ),
    'maps of another kind': Case(
        {**IN_IMAGES, 'masks/{i}.pgm': label_map(0, 1)},
        classes=GROUND,
        notes=(NO_NAMES,),
    ),
    'an id for validation alone': Case(
        {
            **IN_IMAGES,
            'train.txt': '\n'.join(map(str, range(8))),
            'val.txt': '8\n9',
            'masks/{i}.png': lambda i: label_map(0, 1, 2 if i > 7 else 0),
        },
        classes=[*GROUND, 'class 2'],
        notes=(NO_NAMES, 'class 2 is in no label map for training'),
    ),
    'maps that can not be read': Case(
        {'{split}/{i}.png': photo, '{split}annot/{i}.png': label_map(0, 1)}
        | {f'valannot/{i}.png': b'' for i in (8, 9)},
        error='ignored 2 label maps that can not be read',
    ),
}


@pytest.mark.parametrize('name', SEGMENTATION)
def test_label_maps(tmp_path, name):
    """The square is the second class, or that of its color above the ground."""
    case = SEGMENTATION[name]
    data = check(case, tmp_path / 'my', 'seg')
    if not data:
        return
    write(data, tmp_path / 'out')
    lines = (tmp_path / 'out/train.txt').read_text().split('\n')
    for line, x in zip(lines, data.splits['train']):
        assert tmp_path / 'my' / line == x.path
        labels = np.array(Image.open(tmp_path / f'out/labels/{line}.png'))
        drawn = 1 + BOTH.index(name_of(number_of(x)))
        square = drawn if 'outlines' in name else 1
        assert labels.shape == SIZE[::-1]
        assert labels[20, 20] == square and labels[40, 40] == 0
        if case.options.get('ignore'):
            assert labels[0, 0] == 255


@pytest.mark.parametrize('same', [True, False])
def test_palettes(tmp_path, same):
    """The indices are ids if all files have one palette; otherwise colors are."""
    grow(tmp_path, {'images/{i}.png': photo, 'masks/{i}.png': label_map(0, 1, 0)})
    for i, path in enumerate(sorted(tmp_path.glob('masks/*'))):
        ids = np.array(Image.open(path))
        is_turned = not same and i == 0
        image = Image.fromarray(1 - ids if is_turned else ids)
        colors = [9, 0, 200], [128, 64, 0]
        image.putpalette(list(chain(*colors[:: -1 if is_turned else 1])))
        image.save(path)
    if same:
        assert read(tmp_path, 'seg').classes == GROUND
        return
    with pytest.raises(ValueError, match='have colors, 9,0,200'):
        read(tmp_path, 'seg')
    data = read(tmp_path, 'seg', colors=['a=9,0,200', 'b=128,64,0'])
    for x in photos_of(data):
        labels = data.label_maps.labels(x)
        assert labels[20, 20] == 1 and labels[0, 0] == 0


def test_masks_with_blurred_borders(tmp_path):
    """As JPEG leaves them; ids of other masks in JPEG are not exact."""
    grow(tmp_path, {'images/{i}.png': photo})
    (tmp_path / 'masks').mkdir()
    rows, columns = np.mgrid[:48, :64]
    for i in range(10):
        disk = (rows - 24) ** 2 + (columns - 32) ** 2 < (12 + i) ** 2
        Image.fromarray(np.uint8(disk * 255)).save(tmp_path / f'masks/{i}.jpg')
    data = read(tmp_path, 'seg')
    assert data.classes == ['class 0', 'class 255']
    assert any('grays, as of JPEG' in str(note) for note in data.notes)
    labels = data.label_maps.labels(photos_of(data)[0])
    assert labels[24, 32] == 1 and labels[0, 0] == 0
    for path in tmp_path.glob('masks/*'):
        Image.fromarray(np.uint8(np.array(Image.open(path)) > 9)).save(path)
    with pytest.raises(ValueError, match='a label map in JPEG has no exact ids'):
        read(tmp_path, 'seg')


@pytest.mark.parametrize('names', [None, ['rest', 'disc']])
@pytest.mark.parametrize('kind', ['smoothed', 'five grays', 'enlarged'])
def test_masks_with_smoothed_borders(tmp_path, names, kind):
    """White is a class, whatever grays are between it and black."""
    grow(tmp_path, {**IN_IMAGES, 'masks/x': ''})
    for i in range(10):
        mask = label_map(0, 255, 0)
        if kind == 'smoothed':
            cv2.circle(mask, (20, 20), 18, 255, -1, cv2.LINE_AA)
        elif kind == 'five grays':
            mask[9, 8:30], mask[9:31, 8], mask[30, 8:30] = 128, 64, 191
        else:
            mask = cv2.resize(cv2.resize(mask, (16, 12)), (64, 48))
        Image.fromarray(mask).save(tmp_path / f'masks/{i}.png')
    data = read(tmp_path, 'seg', classes=names)
    assert data.classes == (names or ['class 0', 'class 255'])
    assert any('grays, as of JPEG or of smoothed' in str(note) for note in data.notes)
    labels = data.label_maps.labels(photos_of(data)[0])
    assert labels[20, 20] == 1 and labels[44, 44] == 0 and labels.max() == 1


def test_thin_classes_are_no_borders(tmp_path):
    """Lines of a few ids beside 255, which is no label."""
    mask = label_map(0, 1, 255)
    mask[20:22], mask[24:26] = 2, 3
    grow(tmp_path, {**IN_IMAGES, 'masks/{i}.png': mask})
    assert read(tmp_path, 'seg').classes == [f'class {i}' for i in range(4)]


SQUARES = {'masks/{i}.png': label_map(0, 1, 0)}


def lying(i, orientation):
    """A photo that its EXIF data rotate."""
    data = Image.Exif()
    data[0x0112] = orientation
    with io.BytesIO() as file:
        Image.fromarray(photo(i)).save(file, 'jpeg', exif=data, quality=95)
        return file.getvalue()


def seen_square(path, name):
    """Where OpenCV sees the square of a photo, (H, W)."""
    pixels = cv2.imread(str(path))[..., ::-1].astype(int)
    return np.abs(pixels - COLORS[name]).sum(-1) < 200


@pytest.mark.parametrize(
    'orientations, options, notes',
    [
        (range(1, 9), {}, ['rotated as EXIF data rotate']),
        ((1, 6), {}, ['rotated as EXIF data rotate']),
        ((1, 6), dict(resize_masks=True), ['rotated as EXIF data rotate']),
        ((1, 3), dict(rotate_masks=True), ['rotated as EXIF data rotate']),
        ((2, 3, 4), dict(rotate_masks=True), ['rotated as EXIF data rotate']),
    ],
)
def test_label_maps_of_rotated_photos(tmp_path, orientations, options, notes):
    """Maps of the pixels that the camera wrote are turned as OpenCV turns photos."""
    kinds = list(orientations)
    tree = {'images/{i}.jpg': lambda i: lying(i, kinds[i % len(kinds)]), **SQUARES}
    data = read(grow(tmp_path, tree), 'seg', **options)
    for x in photos_of(data):
        square = seen_square(x.path, name_of(number_of(x)))
        labels = data.label_maps.labels(x)
        assert labels.shape == square.shape and (labels != square).mean() < 0.05
    exif_notes = [str(note) for note in data.notes if 'EXIF' in str(note)]
    assert len(exif_notes) == len(notes)
    assert all(map(str.__contains__, exif_notes, notes))


def test_label_maps_of_rotated_photos_that_fit_both_ways(tmp_path):
    """It can't be known which is right, and is said, unless other maps tell."""
    tree = {'images/{i}.jpg': lambda i: lying(i, 3), **SQUARES}
    data = read(grow(tmp_path / 'a', tree), 'seg')
    assert '10 photos are rotated by EXIF data, and their label maps fit both ways' in (
        '\n'.join(map(str, data.notes))
    )
    upright = {'images/{i}.jpg': lambda i: lying(i, 6 - 3 * (i % 2))}
    upright['masks/{i}.png'] = lambda i: label_map(
        0, 1, size=(64, 48)[:: i % 2 * 2 - 1]
    )
    data = read(grow(tmp_path / 'b', upright), 'seg')
    assert not any('EXIF' in str(note) for note in data.notes)
    assert all(data.label_maps.labels(x)[20, 20] == 1 for x in photos_of(data))


def test_large_label_maps(tmp_path):
    """A map takes a few bytes a pixel; one that claims too many is not opened."""
    side = 6000
    image = Image.new('1', (side, side))
    image.paste(1, (0, 0, 100, 100))
    image.save(tmp_path / 'map.png')
    reader = MapReader(Wanted(), are_colors=False, rotates=False)
    x = Photo(tmp_path, (side, side), label_map=tmp_path / 'map.png')
    tracemalloc.start()
    numbers = reader.read(x)
    histogram = count_values(numbers)
    labels = look_up(np.array([5, 7], np.uint8), numbers)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert histogram.pixels.tolist() == [side**2 - 10**4, 10**4]
    assert labels[99, 99] == 7 and labels[100, 99] == 5
    assert peak < 5 * side**2
    content = bytearray((tmp_path / 'map.png').read_bytes())
    content[16:24] = (10**5).to_bytes(4, 'big') * 2
    content[29:33] = zlib.crc32(content[12:29]).to_bytes(4, 'big')
    (tmp_path / 'map.png').write_bytes(content)
    with pytest.raises(OtherSize, match=r'\(100000, 100000\) instead of'):
        reader.read(x)
    with pytest.raises(OSError, match='100000 x 100000 pixels'):
        MapReader(Wanted(resizes=True), False, False).read(x)


# -------------------------------------------------------------------- classes
def flags(yes, no, patient=False):
    """A table with a column of yes and no for each class."""
    lines = ['image,red,blue' + ',patient' * patient]
    for i in range(10):
        cells = [no, yes] if i % 2 else [yes, no]
        lines.append(f'{i},{",".join(cells)}' + f',p{i}' * patient)
    return '\n'.join(lines)


CONTRADICTION = 'photos have duplicates with different labels'
TWICE = 'photos for validation or testing are for training, too'
NAMED_PHOTOS = {
    'train/{name}.{i}.jpg': photo,
    'test1/{i}.jpg': photo,
    'sampleSubmission.csv': 'id,label\n0,1',
}
CLASSES = {
    'folders': Case({'{name}/{i}.jpg': photo}, notes=(EVERY_FIFTH,)),
    'folders in splits': Case({'{split}/{name}/{i}.jpg': photo}),
    'splits beside another word': Case({'bbox_{split}/{name}/{i}.jpg': photo}),
    'deep folders': Case({'archive/set/{split}/{name}/{i}.jpg': photo}),
    'folders between': Case({'{split}/images/{name}/day/{i}.jpg': photo}),
    'folders below': Case({'{name}/day/{i}.jpg': photo}),
    'one split': Case({'train/{name}/{i}.jpg': photo}, notes=(EVERY_FIFTH,)),
    'a class that is called train': Case(
        {'train/day/{i}.jpg': photo, 'bus/day/x{i}.jpg': photo},
        photos=(16, 4, 4),
        classes=['bus', 'train'],
        notes=(TWICE, CONTRADICTION),
    ),
    'a split of another name': Case(
        {'train/{name}/{i}.jpg': photo, 'fold2/{name}/x{i}.jpg': photo},
        error='are fold2, train splits',
    ),
    'splits without classes': Case(
        {'{split}/{i}.jpg': photo}, error='has 10 photo files'
    ),
    'one folder': Case({'one/{i}.jpg': photo}, error='it has 10 photo files'),
    'classes in upper case': Case(
        {'{name}/{i}.jpg': photo, 'Red/x{i}.jpg': photo},
        photos=(16, 4, 4),
        classes=['Red', *BOTH],
        notes=('in upper case or blanks alone: Red, red', TWICE, CONTRADICTION),
    ),
    'a table': Case(
        {'{i}.jpg': photo, 'a.csv': table('Image Name,Label', '{i}.jpg,{name}')}
        | {'sample_submission.csv': 'id,label\n0,red\n'}
    ),
    'a table without a header': Case(
        {'{i}.jpg': photo, 'a.csv': table('', '{i}\t{name}').encode('utf-16')}
    ),
    'a table of windows': Case(
        {'{i}.jpg': photo, 'a.csv': table('id;who;label', 'x\\{i}.JPG;bob;{name}')}
    ),
    'a column that an option names': Case(
        {'{i}.jpg': photo, 'a.csv': table('id;who;what', '{i};bob;{name}')},
        options=dict(column='what'),
    ),
    'columns that are not clear': Case(
        {'{i}.jpg': photo, 'a.csv': table('id;who;what', '{i};bob;{name}')},
        error='--column names one of who, what',
    ),
    'rows of other columns': Case(
        {'{i}.jpg': photo, 'a.csv': table('id;what', '{i};{name};x')},
        error='do not fit its header',
    ),
    'ones of roboflow': Case(
        {'{split}/{i}.jpg': photo}
        | {
            'a.csv': 'filename, red, blue\n'
            + '\n'.join(f'{i}.jpg, {1 - i % 2}, {i % 2}' for i in range(10))
        }
    ),
    'several ones': Case(
        {
            '{i}.jpg': photo,
            'a.csv': table('filename, red, blue', '{i}.jpg, 1, 1') + '\n9.jpg, 0, 1',
        },
        error='0.jpg has several classes, red, blue',
    ),
    **{
        f'{yes} for yes, {no} for no': Case(
            {'{i}.jpg': photo, 'a.csv': flags(yes, no, patient=True)}
        )
        for yes, no in (('1.0', '0.0'), ('True', 'False'), ('1', '-1'), ('yes', ''))
    },
    'one of the columns of classes': Case(
        {'{i}.jpg': photo, 'a.csv': flags('1', '0')},
        options=dict(column='red'),
        error='--column red: its values are yes and no, .* red, blue; leave',
    ),
    'a column of yes and no': Case(
        {
            '{i}.jpg': photo,
            'a.csv': '\n'.join(['image;sick', *(f'{i};{i % 2}' for i in range(10))]),
        },
        classes=['0', '1'],
    ),
    'lists of mmpretrain': Case(
        {
            'img/{i}.jpg': photo,
            'train.txt': '\n'.join(f'{i}.jpg {i % 2}' for i in range(8)),
            'val.txt': '8.jpg 0\n9.jpg 1',
            'classes.txt': 'red\nblue',
        }
    ),
    'numbers of classes that begin with zeros': Case(
        {
            'img/{i}.jpg': photo,
            'train.txt': '\n'.join(f'{i}.jpg 0{i % 2}' for i in range(8)),
            'val.txt': '8.jpg 00\n9.jpg 01',
            'classes.txt': 'red\nblue',
        }
    ),
    'a list of names of classes': Case(
        {
            'img/a {i}.jpg': photo,
            'labels.txt': '\n'.join(f'a {i}.jpg,{name_of(i)}' for i in range(10)),
        }
    ),
    'classes in two folders': Case(
        {'Dataset/{name}/{i}.jpg': photo, 'Examples/{name}/x{i}.jpg': photo},
        photos=(16, 4, 4),
        notes=('the classes are the folders in Dataset, Examples: --images', TWICE),
    ),
    'several folders in a class': Case(
        {'{name}/day/{i}.jpg': photo, '{name}/night/x{i}.jpg': photo},
        photos=(16, 4, 4),
        notes=('folders such as blue, not those in it, such as day: --images', TWICE),
    ),
    'folders that differ by a blank': Case(
        {'{name}/{i}.jpg': photo, '{name} /x{i}.jpg': photo},
        photos=(16, 4, 4),
        notes=('2 classes have folders that differ by blanks', TWICE),
    ),
    'folders that differ by a hyphen': Case(
        {'a-b/{i}.jpg': photo, 'a b/x{i}.jpg': photo},
        photos=(16, 4, 4),
        classes=['a b', 'a-b'],
        notes=('upper case or blanks alone: a b, a-b', TWICE, CONTRADICTION),
    ),
    'splits in the folders of classes': Case({'{name}/{split}/{i}.jpg': photo}),
    'label maps in the folders of classes': Case(
        {'{name}/images/{i}.png': photo, '{name}/masks/{i}.png': label_map(0, 1)},
        notes=('ignored 10 label maps of photos, such as',),
    ),
    'label maps beside photos': Case(
        {'{name}/a ({i}).png': photo, '{name}/a ({i})_mask.png': label_map(0, 1)},
        notes=('ignored 10 label maps of photos, such as',),
    ),
    'PNG files of the names of JPEG files': Case(
        {'{name}/{i}.jpg': photo, '{name}/{i}.png': lambda i: photo(i + 10)},
        photos=(16, 4, 4),
        notes=("--images '*.jpg' ignores them: 10 PNG files beside JPEG",),
    ),
    'objects and defects of MVTec AD': Case(
        {
            '{name}/train/good/{i}.png': photo,
            '{name}/test/cut/{i}.png': lambda i: photo(i + 10, name=name_of(i)),
            '{name}/ground_truth/cut/{i}_mask.png': label_map(0, 255),
        },
        photos=(10, 10, 10),
        notes=(
            'ignored 10 label maps of photos',
            'folders such as blue, not those in it, such as cut',
            'no validation photos: the test photos are used for validation',
            'is of MVTec, and is not read',
        ),
    ),
    'photos of masks': Case(
        {'{name}_mask/{i}_mask.jpg': photo}, classes=['blue_mask', 'red_mask']
    ),
    'boxes in the folders of classes': Case(
        {'{name}/{i}.jpg': photo, '{name}/{i}.xml': voc}
    ),
    'tables of kaggle': Case(
        {
            'train/{i}.jpg': photo,
            'test/t{i}.jpg': lambda i: photo(i + 10),
            'train.csv': table('image,age,target', '{i}.jpg,4{i},{name}'),
            'test.csv': table('image,age', 't{i}.jpg,4{i}'),
            'sample_submission.csv': table('image,target', 't{i}.jpg,red'),
        },
        notes=('ignored 10 photos without annotations',),
    ),
    'tables of kaggle, the column as an option': Case(
        {
            '{i}.jpg': photo,
            't{i}.jpg': lambda i: photo(i + 10),
            'train.csv': table('image,age,breed', '{i}.jpg,4{i},{name}'),
            'test.csv': table('image,age', 't{i}.jpg,4'),
        },
        options=dict(column='breed'),
        notes=('ignored 10 photos without annotations',),
    ),
    'numbers, and a table of their names': Case(
        {
            'train/{i}.jpg': photo,
            'train.csv': '\n'.join(
                ['id,label', *(f'{i}.jpg,{i % 2}' for i in range(10))]
            ),
            'label_num_to_disease_map.json': {'0': 'red', '1': 'blue', '2': 'x'},
        },
        notes=('names of classes are those of',),
    ),
    'another number for each photo': Case(
        {'{i}.jpg': photo, 'a.csv': table('image,score', '{i}.jpg,0.{i}')},
        error='which column has the class. score has another value for each photo',
    ),
    'several labels of a photo': Case(
        {
            '{i}.jpg': photo,
            'a.csv': 'image,labels\n'
            + '\n'.join(f'{i},{("a", "b", "a b")[i % 3]}' for i in range(10)),
        },
        classes=['a', 'a b', 'b'],
        notes=('1 classes are combinations of others: a classifier',),
    ),
    'classes in the names of photos': Case(
        NAMED_PHOTOS,
        error='help; names of photos begin with blue red: --classes blue red takes th',
    ),
    'classes in the names of photos, by an option': Case(
        NAMED_PHOTOS,
        options=dict(classes=BOTH),
        notes=('ignored 10 photos without annotations',),
    ),
    'classes at the end of names, by an option': Case(
        {'{split}/a{i}-{name}.jpg': photo}, options=dict(classes=BOTH)
    ),
    'classes in the names of photos, in folders of others': Case(
        {'day/{name}_{i}.jpg': photo, 'night/{i}_{name}.jpg': lambda i: photo(i + 10)},
        options=dict(classes=BOTH),
        photos=(16, 4, 4),
    ),
    'classes at the end of names': Case(
        {'0{i} {name}.jpg': photo},
        error='names of photos end with blue red: --classes blue red takes these for',
    ),
    'two classes in a name': Case(
        {'{name}{i}.jpg': photo, 'red_vs_blue.jpg': photo(0)},
        options=dict(classes=BOTH),
        error='red_vs_blue.jpg: its name has two classes, blue, red',
    ),
    'names of cameras': Case(
        {'IMG_{i}.jpg': photo, 'DSC_{i}.jpg': photo}, error='see --help; it has 20 ph'
    ),
    'photos and label maps': Case(
        {'images/{i}.jpg': photo, 'masks/{i}_mask.png': label_map(0, 1)},
        error='one class only, images: there is nothing to tell apart',
    ),
    'label maps of Cityscapes': Case(
        {
            'leftImg8bit/train/{i}_leftImg8bit.png': photo,
            'gtFine/train/{i}_gtFine_instanceIds.png': label_map(0, 1),
        },
        error='one class only, leftImg8bit: .*is of Cityscapes, which new_config does ',
    ),
    'label maps beside class folders': Case(
        {'RGB/{name}/{i}.png': photo, 'Depth/{name}/{i}.png': label_map(0, 1)},
        notes=('ignored 10 label maps of photos',),
    ),
    'label maps beside folders of photos': Case(
        {'images/{name}/{i}.png': photo, 'masks/{name}/{i}.png': label_map(0, 1)},
        notes=('ignored 10 label maps of photos',),
    ),
    'defects of MVTec AD': Case(
        {
            'screw/all/{name}/{i}.png': photo,
            'screw/ground_truth/{name}/{i}_mask.png': label_map(0, 255, 0),
        },
        notes=('ignored 10 label maps of photos', 'is of MVTec, and is not read'),
    ),
    'classes that are called after masks': Case(
        {'mask/{i}.png': photo, 'no_mask/{i}.png': lambda i: photo(i + 10)},
        (16, 4, 4),
        ['mask', 'no_mask'],
    ),
    'class folders beside labels of another format': Case(
        {'{name}/{i}.jpg': photo, 'my.vott': '{}'},
        notes=('its my.vott is of VoTT, and is not read: classes are those of',),
    ),
    'folders that a table contradicts': Case(
        {'{name}/{i}.jpg': photo, 'a.csv': table('id,label', '{i},green')},
        error='folders and a table tell other classes',
    ),
}


@pytest.mark.parametrize('name', CLASSES)
def test_photo_classes(tmp_path, name):
    case = CLASSES[name]
    data = check(case, tmp_path / 'my', 'cls')
    if not data:
        return
    write(data, tmp_path / 'out')
    lines = (tmp_path / 'out/train.txt').read_text().split('\n')
    assert [line.rsplit(' ', 1)[0] for line in lines] == [
        str(x.path.relative_to(tmp_path / 'my')) for x in data.splits['train']
    ]
    if case.classes == BOTH:
        assert all(x.class_name == name_of(number_of(x)) for x in photos_of(data))


# --------------------------------------------------------------- files of photos
def test_photos_are_those_that_opencv_reads(tmp_path, monkeypatch):
    """Orientation as in OpenCV, no limit of pixels; other files are counted."""
    tree = {f'{{name}}/{x}{{i}}.{x}': exif(x) for x in ('jpeg', 'webp', 'png')}
    grow(tmp_path, {**tree, 'red/page.jpg': '<html>', 'red/x.HEIC': b''}, range(4))
    monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', 99)
    data = read(tmp_path, 'cls')
    sizes = {x.path: x.size for x in photos_of(data)}
    assert all(x == cv2.imread(f'{path}').shape[1::-1] for path, x in sizes.items())
    assert {*sizes.values()} == {(64, 48), (48, 64)}
    notes = '\n'.join(map(str, data.notes))
    assert 'ignored 1 photos that OpenCV does not' in notes
    assert 'ignored 1 .heic files' in notes


def jpeg(**options):
    with io.BytesIO() as file:
        Image.fromarray(photo(0)).save(file, 'jpeg', **options)
        return file.getvalue()


FILM = b'\0\0\0\x18ftypmp42' + bytes(range(255)) * 40


@pytest.mark.parametrize(
    'content, early',
    [
        (jpeg(), False),
        (jpeg(progressive=True) + FILM, False),
        (jpeg()[:-300], True),
        (jpeg()[:-300] + FILM, True),
        # a small picture in the data before the pixels
        (jpeg(comment=jpeg())[:-300], True),
        (cv2.imencode('.png', photo(0))[1].tobytes() + FILM, False),
        (cv2.imencode('.png', photo(0))[1].tobytes()[:900], True),
        (b'GIF89a', False),
    ],
)
def test_photos_that_end_early(content, early):
    assert ends_early(content) == early


def test_photos_that_end_early_are_told(tmp_path, monkeypatch):
    grow(tmp_path, {'{name}/{i}.jpg': photo, 'red/0.jpg': jpeg()[:-2]})
    # some versions of OpenCV fill what is missing, others do not read such files
    monkeypatch.setattr(cv2, 'imdecode', lambda *_: photo(0))
    notes = '\n'.join(str(x) for x in read(tmp_path, 'cls').notes)
    assert '1 photos end early' in notes


@pytest.mark.parametrize(
    'ending, pixels, message',
    [
        (
            'tif',
            (4, np.uint16, 900),
            '4 bands of 16 bits.* upper 8 bits of three bands',
        ),
        (
            'tif',
            (1, np.uint16, 900),
            'have 16 bits, and OpenCV.* reads the upper 8 bits',
        ),
        ('png', (3, np.uint16, 900), 'have 16 bits, and .*: 4 gray levels'),
        ('tif', (4, np.uint8, 255), '4 bands of 8 bits, and .* reads three bands'),
        ('png', (4, np.uint8, 255), ''),
    ],
)
@pytest.mark.parametrize('task', ['cls', 'seg'])
def test_bits_and_bands(tmp_path, ending, pixels, message, task):
    bands, dtype, most = pixels

    def bytes_of(i):
        numbers = np.random.default_rng(i).integers(0, most, (48, 64, bands), dtype)
        return cv2.imencode(f'.{ending}', numbers)[1].tobytes()

    tree = {f'{{name}}/{{i}}.{ending}': bytes_of}
    if task == 'seg':
        tree = {f'images/{{i}}.{ending}': bytes_of, **MASKS}
    notes = '\n'.join(map(str, read(grow(tmp_path, tree), task).notes))
    assert re.search(message, notes) if message else 'bits' not in notes
    assert not message or '10 photos have ' in notes


def test_photos_that_opencv_does_not_read(tmp_path):
    content = cv2.imencode('.tif', np.float32(photo(0)[..., 0]))[1].tobytes()
    grow(tmp_path, {'{name}/{i}.tif': content})
    with pytest.raises(
        ValueError, match='reads none of 10 photos, .* three bands of 8'
    ):
        read(tmp_path, 'cls')


def test_pages(tmp_path):
    with io.BytesIO() as file:
        pages = [Image.fromarray(photo(i)) for i in range(3)]
        pages[0].save(file, 'tiff', save_all=True, append_images=pages[1:])
        grow(tmp_path, {'{name}/{i}.tif': file.getvalue()})
    assert '10 photos have several pages' in '\n'.join(
        str(note) for note in read(tmp_path, 'cls').notes
    )


def test_photos_of_several_splits(tmp_path):
    data = grow(tmp_path, {'{split}/{name}/{i}.jpg': photo})
    shutil.copy(data / 'train/red/0.jpg', data / 'val/red/copied.jpg')
    (note,) = (str(x) for x in read(data, 'cls').notes if 'for training, too' in str(x))
    assert note.startswith('1 photos') and note.endswith('copied.jpg')


# ---------------------------------------------------------------------- names
@pytest.mark.parametrize(
    'name, words',
    [
        ('washington', 'washington'),
        ('ISIC_GroundTruth', 'isic groundtruth'),
        ('trainannot', 'train annot'),
        ('JPEGimages', 'jpeg images'),
        ('a_gtFine_labelTrainIds', 'a gt fine label train ids'),
        ('SegmentationObject', 'segmentation object'),
        ('segment-anything2', 'segment anything'),
    ],
)
def test_words(name, words):
    assert words_of(name) == tuple(words.split())


@pytest.mark.parametrize(
    'names, split',
    [
        ('train Training train2017 trainannot x_train', 'train'),
        ('valid validation_set images_val Dev eval', 'val'),
        ('testing test_images instances_test TestData', 'test'),
        ('train_station validated test_project trained trainval contest', None),
    ],
)
def test_names_that_are_splits(names, split):
    assert {split_of_name(name) for name in names.split()} == {split}


def test_a_split_beside_other_words_has_a_twin(tmp_path):
    """Such as that of drive_train beside drive_val."""
    grow(tmp_path, {'drive_{split}/{i}.jpg': photo, 'a.json': coco()})
    splits = read(tmp_path, 'det').splits
    assert [number_of(x) for x in splits['val']] == [8, 9]


# ------------------------------------------------------------ a picture of labels
def test_small_objects_are_enlarged(tmp_path):
    """Where most objects are small, a part of the photo is drawn, within its edges."""
    data = read(grow(tmp_path, {'{i}.jpg': photo, 'a.json': coco()}), 'det')
    (item,) = photos_of(data)[0].objects
    seen = Photo(tmp_path, (4000, 3000))
    small = item.scaled((0.5, 0.5))
    window = choose_window(seen, [small])
    assert (window.left, window.top) == (0, 0) and window.width < 200
    (x, y), (right, bottom) = window.corners(np.array([[4, 4.5], [15, 15.5]]))
    assert 0 <= x < right <= SIDE and 0 <= y < bottom <= SIDE
    assert right - x == pytest.approx(ENLARGED)
    whole = choose_window(seen, [item.scaled((40, 40))])
    assert (whole.width, whole.height) == seen.size


def test_outlines_of_runs_and_maps():
    mask = label_map(0, 1, 0)
    (border,) = contours(mask)
    assert border.min(0).tolist() == [8.5, 9.5] and border.max(0).tolist() == [
        29.5,
        30.5,
    ]
    counts = [8 * 48 + 9, *[22, 26] * 21, 22, 34 * 48 + 17]
    runs = Outline(runs=dict(size=[48, 64], counts=counts))
    (same,) = outlines(Object('red', (8, 9, 22, 22), 484, outline=runs))
    assert np.array_equal(same, border)
    assert shorten('a' * 30) == 'a' * 30 and len(shorten('a' * 31)) <= 31
