"""Configs for data sets of users, on files of the same forms as theirs."""

import json
import re
import shutil
import sys
from ast import literal_eval
from collections import defaultdict
from itertools import chain
from pathlib import Path

import cv2
import numpy as np
import pytest
from loading import ROOT, load_module
from mmengine.runner import Runner
from PIL import Image

from mmlinattn.engine import build_model, check_data
from mmlinattn.utils import load_config
from mmlinattn_tools.own_data import OwnData

tool = load_module('tools/misc/new_config.py')
PAGE = (ROOT / 'docs' / 'use' / 'predict.md').read_text('utf-8')
BLOCKS = re.findall(r'^```python\n(.*?)^```$', PAGE, re.M | re.S)
VOC = """<annotation><filename>other.jpg</filename><size><width>0</width></size>
<object><name>{name}</name><bndbox><xmin>8</xmin><ymin>9</ymin><xmax>30</xmax>
<ymax>31</ymax></bndbox></object></annotation>"""
SQUARE = [8, 9, 30, 9, 30, 31, 8, 31]
NAMES = ('red', 'blue')
LONG = pytest.mark.full
ONE_STACK = pytest.mark.modern_full


def photo(path, name='red', size=(64, 48)):
    """Adds a photo with a square to a folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(len(path.stem)).integers(99, 150, (*size[::-1], 3))
    pixels[9:31, 8:30] = (220, 20, 60) if name == 'red' else (0, 114, 240)
    Image.fromarray(pixels.astype(np.uint8)).save(path)
    return path


def ten_photos(data, place='images/{}.jpg'):
    """Adds photos of both classes in turn, and returns their paths."""
    return [photo(data / place.format(i), NAMES[i % 2]) for i in range(10)]


def label_map(path, ids, size=(64, 48)):
    path.parent.mkdir(parents=True, exist_ok=True)
    labels = np.full(size[::-1], ids[0], np.uint8)
    labels[9:31, 8:30], labels[:4] = ids[1], ids[-1]
    Image.fromarray(labels).save(path)


def coco(path, names, folder='', masks=True, categories=NAMES):
    """A COCO file of photos that are called 0.jpg, 1.jpg, ..."""
    path.parent.mkdir(parents=True, exist_ok=True)
    extra = dict(segmentation=[SQUARE]) if masks else {}
    ids = {name: i + 5 for i, name in enumerate(categories)}
    images = [dict(id=i, file_name=f'{folder}{i}.jpg') for i in range(len(names))]
    objects = [
        dict(id=i, image_id=i, bbox=[8, 9, 22, 22], category_id=ids[name], **extra)
        for i, name in enumerate(names)
    ]
    categories = [dict(id=i, name=name) for name, i in ids.items()]
    content = dict(images=images, annotations=objects, categories=categories)
    path.write_text(json.dumps(content))


def make(data, kind, num=10):
    """A data set of a task, in one of the forms that users have."""
    for i in range(num):
        name, split = NAMES[i % 2], 'val' if i > 7 else 'train'
        if kind == 'coco':
            photo(data / f'{split}2017' / f'{i % 8}.jpg', name)
        elif kind in ('one file', 'boxes'):
            photo(data / 'images' / f'{i}.jpg', name)
        elif kind == 'voc':
            photo(data / 'JPEGImages' / f'a.{i}.png', name)
            for part in ('Annotations', 'ImageSets/Main'):
                (data / part).mkdir(parents=True, exist_ok=True)
            (data / 'Annotations' / f'a.{i}.xml').write_text(VOC.format(name=name))
            with (data / 'ImageSets/Main' / f'{split}.txt').open('a') as file:
                file.write(f'a.{i}.png\n')
        elif kind == 'camvid':
            photo(data / split / f'{i}.png', name)
            label_map(data / f'{split}annot' / f'{i}.png', (0, 1 + i % 2, 11))
        elif kind == 'black and white':
            photo(data / 'images' / f'x_{i}.jpg', name)
            label_map(data / 'masks' / f'x_{i}_mask.png', (0, 255))
            label_map(data / 'SegmentationObject' / f'x_{i}.png', (0, 1, 2))
        elif kind == 'classes':
            photo(data / name / f'{i}.jpg', name)
        elif kind == 'split classes':
            photo(data / split / name / f'{i}.jpg', name)
    names = [NAMES[i % 2] for i in range(num)]
    if kind == 'coco':
        folder, turned = data / 'annotations', NAMES[::-1]
        coco(folder / 'instances_train2017.json', names[:8])
        coco(folder / 'instances_val2017.json', names[8:], categories=turned)
        coco(folder / 'person_keypoints_val2017.json', names[8:])
    elif kind in ('one file', 'boxes'):
        coco(data / 'labels.json', names, 'images/', kind != 'boxes', (*NAMES, 'green'))
    return data


TASKS = {
    'coco': 'det',
    'one file': 'det',
    'boxes': 'det',
    'voc': 'det',
    'camvid': 'seg',
    'black and white': 'seg',
    'classes': 'cls',
    'split classes': 'cls',
}


@pytest.mark.parametrize('kind', TASKS)
def test_every_form_is_read(kind, tmp_path):
    """Splits and classes, and the libraries' reading of the written files."""
    data = make(tmp_path / 'my', kind)
    found = OwnData(data, TASKS[kind], ignore=[11] * (kind == 'camvid'))
    assert [len(found.photos[split]) for split in ('train', 'val', 'test')] == [8, 2, 2]
    numbers = dict(zip(('camvid', 'black and white'), ((0, 1, 2), (0, 255))))
    ids = numbers.get(kind, ())
    assert found.classes == ([f'class {i}' for i in ids] or ['blue', 'red'])
    assert found.masks == (kind in ('coco', 'one file'))
    drawn = kind in ('one file', 'boxes', 'black and white', 'classes')
    assert any('every 5th' in note for note in found.notes) == drawn
    found.write(tmp_path / 'out')
    paths = [photo['path'] for photo in found.photos['train']]
    if TASKS[kind] == 'det':
        content = json.loads((tmp_path / 'out/train.json').read_text())
        for image, x in zip(content['images'], content['annotations']):
            i = int(re.findall(r'\d+', image['file_name'])[-1])
            assert x['category_id'] == found.classes.index(NAMES[i % 2])
            assert x['bbox'] == [8, 9, 22, 22] and x['image_id'] == image['id']
            assert (image['width'], image['height']) == (64, 48)
            assert (data / image['file_name']).is_file()
    else:
        lines = (tmp_path / 'out/train.txt').read_text().split('\n')
        names = [line.rsplit(' ', 1)[0] for line in lines]
        assert [data / name for name in names] == paths
    if TASKS[kind] == 'seg':
        for name in names:
            labels = np.array(Image.open(tmp_path / 'out/labels' / f'{name}.png'))
            number = int(re.findall(r'\d+', name)[-1])
            square = 1 + number % 2 if kind == 'camvid' else 1
            assert labels[20, 20] == square and labels[40, 40] == 0
            assert labels[0, 0] == (255 if kind == 'camvid' else 1)


def test_boxes_outside_of_photos(tmp_path):
    path = make(tmp_path, 'boxes') / 'labels.json'
    for box in ('[64, 9, 22, 22]', '[8, 9, 0, 22]'):
        replace(path, '[8, 9, 22, 22]', box)
    found = OwnData(tmp_path, 'det')
    assert any('left out 2 boxes of less than a pixel' in x for x in found.notes)
    photos = found.photos['train'] + found.photos['val']
    assert sum(len(photo['objects']) for photo in photos) == 8


def objects_of(data, **options):
    found = OwnData(data, 'det', **options)
    return found, [x for photo in found.photos['train'] for x in photo['objects']]


def change(path, key='annotations', **values):
    """Changes all objects or images of a COCO file."""
    content = json.loads(path.read_text())
    for x in content[key]:
        x.update(values)
    path.write_text(json.dumps(content))


def replace(path, old, new):
    """Changes the first of these words in a file."""
    path.write_text(path.read_text().replace(old, new, 1))


@pytest.mark.parametrize(
    'values, outlines',
    [
        (dict(area=0, iscrowd=None, segmentation=None), False),
        (dict(iscrowd='0', ignore='false'), False),
        (dict(area='?', segmentation=[[]]), False),
        (dict(area=None, segmentation=[[8, 9, 30, 31]]), False),
        (dict(bbox=['8', '9', '22', '22'], segmentation=[8, 9, 8, 9, 8, 9]), False),
        (dict(bbox=[], segmentation=SQUARE), True),
        # as CVAT writes masks
        (dict(iscrowd=1, attributes=dict(occluded=False), segmentation=SQUARE), True),
        (dict(bbox=None, segmentation=[[[8, 9], [30, 9], [30, 31], [8, 31]]]), True),
    ],
)
def test_objects_that_mmdetection_would_ignore(tmp_path, values, outlines):
    """Areas, boxes and outlines as tools leave them out."""
    change(make(tmp_path, 'boxes') / 'labels.json', **values)
    found, objects = objects_of(tmp_path)
    assert {(*x['bbox'], x['area'], x['iscrowd']) for x in objects} == {
        (8, 9, 22, 22, 484, 0)
    }
    assert found.masks == outlines
    assert len(objects) == 8


def test_objects_that_are_there_twice(tmp_path):
    path = make(tmp_path, 'boxes') / 'labels.json'
    content = json.loads(path.read_text())
    content['annotations'] += [dict(x, id=99) for x in content['annotations'][:3]]
    path.write_text(json.dumps(content))
    assert any('left out 3 objects' in x for x in OwnData(tmp_path, 'det').notes)


def test_photos_of_another_size_than_labeled(tmp_path):
    path = make(tmp_path, 'boxes') / 'labels.json'
    change(path, 'images', width=128, height=96)
    found, objects = objects_of(tmp_path)
    assert {(*x['bbox'], x['area']) for x in objects} == {(4, 4.5, 11, 11, 121)}
    assert any('10 photos have another size' in x for x in found.notes)


def test_photos_are_those_that_opencv_reads(tmp_path, monkeypatch):
    """Orientation as in OpenCV, no limit of pixels; other files are counted."""
    for ending in ('jpg', 'webp', 'png'):
        exif = Image.Exif()
        exif[0x0112] = 6
        for i in range(4):
            path = photo(tmp_path / f'{NAMES[i % 2]}/{i}.{ending}')
            Image.open(path).save(path, exif=exif)
    (tmp_path / 'red/page.jpg').write_text('<html>')
    monkeypatch.setattr(Image, 'MAX_IMAGE_PIXELS', 99)
    found = OwnData(tmp_path, 'cls')
    photos = [*chain(*found.photos.values())]
    assert all(x['size'] == cv2.imread(f'{x["path"]}').shape[1::-1] for x in photos)
    assert {x['size'] for x in photos} == {(64, 48), (48, 64)}
    assert any('1 photos that OpenCV does not' in x for x in found.notes)


def test_two_photos_of_one_name(tmp_path):
    """By the longest common path, or refused."""
    data = make(tmp_path, 'boxes')
    shutil.copytree(data / 'images', data / 'more/images')
    photos = OwnData(data, 'det').photos['train']
    assert {x['path'].parent for x in photos} == {data / 'images'}
    coco(data / 'labels.json', ['red', 'blue'] * 5)
    with pytest.raises(ValueError, match='name of several photos, .*--images'):
        OwnData(data, 'det')
    assert OwnData(data, 'det', images='more').photos['train'][0]['names']
    coco(data / 'labels.json', ['red', 'blue'] * 5, 'C:\\my\\more\\images\\')
    photos = OwnData(data, 'det').photos['train']
    assert {x['path'].parent for x in photos} == {data / 'more/images'}


def test_other_pictures_of_the_photos_names(tmp_path):
    data = make(tmp_path, 'black and white')
    shutil.copytree(data / 'images', data / 'depth')
    photos = OwnData(data, 'seg').photos['train']
    assert {x['path'].parent for x in photos} == {data / 'images'}
    (data / 'images').rename(data / 'left')
    with pytest.raises(ValueError, match='several photos'):
        OwnData(data, 'seg')
    photos = OwnData(data, 'seg', images='left', masks='masks').photos['train']
    assert {x['path'].parent for x in photos} == {data / 'left'}


@pytest.mark.parametrize(
    'name, split',
    [
        *[(x, 'train') for x in ('train', 'Training', 'train2017', 'trainannot')],
        *[(x, 'val') for x in ('valid', 'validation_set', 'images_val', 'Dev', 'eval')],
        *[(x, 'test') for x in ('testing', 'test_images', 'instances_test', 'a_test')],
        *[(x, None) for x in ('train_station', 'validated', 'test_project', 'trained')],
    ],
)
def test_names_that_are_splits(tmp_path, name, split):
    """Whole words, and beside other words only if there is a twin."""
    photo(tmp_path / 'a_train/c/0.jpg')
    ten_photos(tmp_path, f'{name}/x/{{}}.jpg')
    data = OwnData.__new__(OwnData)
    data.data, data.twins = tmp_path, {'a_*': {'train', 'test'}}
    data.twins = defaultdict(set, data.twins)
    assert data.split_of(tmp_path / name) == split


@pytest.mark.parametrize('name', ['validated', 'test_project', 'test', 'train'])
def test_a_split_of_all_photos_is_none(tmp_path, name):
    data = make(tmp_path, 'boxes')
    (data / 'labels.json').rename(data / f'{name}.json')
    assert [len(x) for x in OwnData(data, 'det').photos.values()] == [8, 2, 2]


@pytest.mark.parametrize(
    'folder, classes',
    [
        ('{name}', ['blue', 'red']),
        ('archive/set/{split}/{name}', ['blue', 'red']),
        ('{split}/images/{name}/day', ['blue', 'red']),
        ('{name}/day', ['blue', 'red']),
        ('{train}/day', ['bus', 'train']),
        ('{dev}/{name}', ['blue', 'red']),
        ('{fold}/{name}', 'are fold2, train splits'),
        ('{split}', 'it has 20 photo files'),
        ('one', 'it has 20 photo files'),
    ],
)
def test_folders_of_classes_at_any_depth(tmp_path, folder, classes):
    for i in range(20):
        words = dict(name=NAMES[i % 2], split='val' if i > 11 else 'train')
        words.update(train=('train', 'bus')[i % 2], dev=('train', 'dev')[i > 11])
        words.update(fold=('train', 'fold2')[i > 11])
        photo(tmp_path / folder.format(**words) / f'{i}.jpg')
    if isinstance(classes, list):
        assert OwnData(tmp_path, 'cls').classes == classes
    else:
        with pytest.raises((FileNotFoundError, ValueError), match=classes):
            OwnData(tmp_path, 'cls')


@pytest.mark.parametrize(
    'line, kind',
    [
        ('p {}', 'utf-8'),
        ('p {}.jpg', 'utf-8-sig'),
        ('p {}  1', 'utf-16'),
        ('C:\\x\\images\\p {}.jpg', 'latin-1'),
        ('"p {}.jpg",red', 'utf-8'),
    ],
)
def test_lists_of_any_kind(tmp_path, line, kind):
    """Names with blanks, marks at the begin, separators of Windows."""
    coco(tmp_path / 'a.json', NAMES * 5, 'p ')
    ten_photos(tmp_path, 'images/p {}.jpg')
    for split, numbers in dict(train=range(7), val=range(7, 10)).items():
        text = '\r\n'.join(map(line.format, numbers))
        ending = 'csv' if ',' in line else 'txt'
        (tmp_path / f'{split}.{ending}').write_bytes(text.encode(kind))
    photos = OwnData(tmp_path, 'det').photos
    assert [int(x['path'].stem[2:]) for x in photos['val']] == [7, 8, 9]
    assert len(photos['train']) == 7


LABELME = """{{"shapes": [{{"label": "{name}", "points": [[8, 9], [30, 9], [30, 31],
[8, 31]], "shape_type": "polygon"}}, {{"label": "{name}", "points": [[8, 9]],
"shape_type": "point"}}], "imagePath": "..\\\\x\\\\old.jpg", "imageWidth": 64}}"""
CVAT = """<annotations>{}</annotations>"""
CVAT_IMAGE = """<image name="sub/{i}.jpg" width="64" height="48"><polyline label="a"
points="1,2;3,4"/><polygon label="{name}" points="8,9;30,9;30,31;8,31"/></image>"""


def label(data, kind):
    """Adds ten photos, and their labels in the form of a tool."""
    for i, path in enumerate(ten_photos(data)):
        name = NAMES[i % 2]
        if kind == 'labelme':
            path.with_suffix('.json').write_text(LABELME.format(name=name))
        elif kind == 'voc':
            box = VOC.format(name=f'\n  {name} ').replace('<bndbox>', '\n<bndbox>')
            box = box.replace('<xmax>30<', '<xmax> 30.0 <')
            difficult = box.replace('<bndbox>', '<difficult>1</difficult><bndbox>')
            extra = re.search('<object>.*</object>', difficult, re.S)[0]
            path.with_suffix('.xml').write_text(box.replace('</ann', f'{extra}</ann'))
        elif 'yolo' in kind:
            places = [x / (48 if j % 2 else 64) for j, x in enumerate(SQUARE)]
            if kind == 'yolo boxes':
                places = [19 / 64, 20 / 48, 22 / 64, 22 / 48]
            (data / 'labels').mkdir(exist_ok=True)
            text = f'{i % 2} {" ".join(map(str, places))}\n'
            (data / 'labels' / f'{i}.txt').write_text(text)
    if kind == 'cvat':
        text = ''.join(CVAT_IMAGE.format(i=j, name=NAMES[j % 2]) for j in range(10))
        (data / 'annotations.xml').write_text(CVAT.format(text))
    elif 'yolo' in kind:
        for other, text in dict(a='names: {me: 1}', b='x: !y', c='names: [me]').items():
            (data / f'{other}.yml').write_text(text)
        text = f'names: {[*NAMES]}' if kind == 'yolo' else 'names: {0: red, 1: blue}'
        (data / 'data.yaml').write_text(f'train: ../train/images\n{text}')


@pytest.mark.parametrize('kind', ['labelme', 'cvat', 'voc', 'yolo', 'yolo boxes'])
def test_files_of_tools(tmp_path, kind):
    label(tmp_path, kind)
    found, objects = objects_of(tmp_path)
    assert found.classes == ['blue', 'red']
    assert found.masks == (kind in ('labelme', 'cvat', 'yolo'))
    for x in objects:
        assert x['bbox'] == pytest.approx([8, 9, 22, 22]) and x['area'] > 480
    assert sum(x['iscrowd'] for x in objects) == 8 * (kind == 'voc')
    for photos in found.photos.values():
        for x in photos:
            assert {*x['names']} == {NAMES[int(x['path'].stem) % 2]}
    lost = dict(labelme='10 shapes: point', cvat='10 shapes: polyline')
    assert kind not in lost or f'left out {lost[kind]}' in found.notes


def test_labels_are_no_lists(tmp_path):
    """Those of photos that are called test1, whatever the name of photo 1 is."""
    for name in ('test0', 'test1', *map(str, range(8))):
        photo(tmp_path / f'{name}.jpg')
        (tmp_path / f'{name}.txt').write_text('1 .3 .4 .3 .4')
    found = OwnData(tmp_path, 'det')
    assert [len(x) for x in found.photos.values()] == [8, 2, 2]
    assert not any('names' in note for note in found.notes)


@pytest.mark.parametrize(
    'line, names, message',
    [
        ('7 .3 .4 .3 .4', '[red, blue]', 'class 7 has no name'),
        ('0 30 20 20 20', '[red, blue]', '30 is no part of the side'),
        ('0 .3 .4 .3', '[red, blue]', 'a line has no class and box'),
        ('0 .3 .4 .3 .4', '[red, blue]\n : x', 'data.yaml: while parsing'),
    ],
)
def test_faults_of_yolo_files(tmp_path, line, names, message):
    label(tmp_path, 'yolo')
    (tmp_path / 'labels/9.txt').write_text(line)
    (tmp_path / 'data.yaml').write_text(f'nc: 2\nnames: {names}')
    if 'yaml' in message:  # which is for all files
        with pytest.raises(ValueError, match=message):
            OwnData(tmp_path, 'det')
    else:
        assert left_out(tmp_path, '9.txt', message)


def left_out(data, name, message):
    """Notes of a data set of ten photos, of which one is left out."""
    found = OwnData(data, 'det')
    used = {x['path'] for x in chain(*found.photos.values())}
    (note,) = (x for x in found.notes if 'annotation files that are damaged' in x)
    return len(used) == 9 and '1 ann' in note and name in note and message in note


@pytest.mark.parametrize('kind', ['labelme', 'voc', 'yolo'])
def test_a_damaged_file_costs_its_photo(tmp_path, kind):
    label(tmp_path, kind)
    (path,) = (x for x in tmp_path.rglob('7.*') if x.suffix != '.jpg')
    path.write_text('{' + path.read_text()[:40])
    assert left_out(tmp_path, path.name, '')


@pytest.mark.parametrize(
    'name', ['a%20\u00e4{}.jpg', 'http://x.org/y/a \u00e4{}.jpg?z=1']
)
def test_names_as_of_other_machines(tmp_path, name):
    """Addresses, and letters that macOS takes apart; links in a circle."""
    path = make(tmp_path, 'boxes') / 'labels.json'
    content = json.loads(path.read_text())
    for i, x in enumerate(content['images']):
        (tmp_path / x['file_name']).rename(tmp_path / f'images/a a\u0308{i}.jpg')
        x['file_name'] = name.format(i)
    path.write_text(json.dumps(content))
    (tmp_path / 'images/again').symlink_to(tmp_path)
    assert len(objects_of(tmp_path)[1]) == 8


def test_masks_in_runs_have_boxes(tmp_path):
    counts = [8 * 48 + 9, *[22, 26] * 21, 22, 34 * 48 + 17]
    change(make(tmp_path, 'boxes') / 'labels.json', bbox=None, segmentation={})
    runs = dict(size=[48, 64], counts=counts)
    change(tmp_path / 'labels.json', segmentation=runs)
    found, objects = objects_of(tmp_path)
    assert found.masks and objects[0]['bbox'] == [8, 9, 22, 22]


def test_photos_that_are_told(tmp_path, monkeypatch):
    make(tmp_path, 'classes', 20)
    paths = sorted(tmp_path.rglob('*.jpg'))
    paths[0].write_bytes(paths[0].read_bytes()[:-300])
    paths[1].rename(paths[1].with_suffix('.HEIC'))
    cut = photo(paths[2].with_name('cut.png'))
    cut.write_bytes(cut.read_bytes()[:900])
    photo(tmp_path / 'Red/x.jpg')
    notes = ' '.join(OwnData(tmp_path, 'cls').notes)
    assert 'left out 2 photos that OpenCV does not read' in notes
    assert 'left out 1 .heic files' in notes
    assert 'classes differ in upper case alone: Red, red' in notes
    # other versions of OpenCV fill what is missing
    monkeypatch.setattr(cv2, 'imdecode', lambda x, _: None if x[0] == 0x89 else x)
    notes = ' '.join(OwnData(tmp_path, 'cls').notes)
    assert '1 photos end early' in notes and 'left out 1 photos' in notes


@pytest.mark.parametrize(
    'header, row, options, message',
    [
        ('Image Name,Label', '{i}.jpg,{name}', {}, ''),
        ('', '{i}\t{name}', {}, ''),
        ('id;who;label', 'x\\{i}.JPG;bob;{name}', {}, ''),
        ('id;who;what', '{i};bob;{name}', dict(column='what'), ''),
        ('id;who;what', '{i};bob;{name}', {}, '--column names one of who, what'),
        ('id;what', '{i};{name};x', {}, 'do not fit its header'),
    ],
)
def test_tables_of_classes(tmp_path, header, row, options, message):
    rows = [row.format(i=i, name=NAMES[i % 2]) for i in range(10)]
    ten_photos(tmp_path)
    (tmp_path / 'sample_submission.csv').write_text('id,label\n0,red\n')
    text = '\n'.join([header] * bool(header) + rows)
    (tmp_path / 'table.csv').write_text(text, 'utf-16')
    if message:
        with pytest.raises(ValueError, match=message):
            OwnData(tmp_path, 'cls', **options)
        return
    found = OwnData(tmp_path, 'cls', **options)
    for x in chain(*found.photos.values()):
        assert x['names'] == [NAMES[int(x['path'].stem) % 2]]


@pytest.mark.parametrize(
    'header',
    [f'filename,{x},xmin,ymin,xmax,ymax' for x in ('class', 'cell_type')] + [''],
)
def test_tables_of_boxes(tmp_path, header):
    row = '{},red,8,9,30,31' if header else '/a/{}.jpg,8,9,30,31,red'
    ten_photos(tmp_path, '{}.jpg')
    rows = [row.format(i) for i in range(10)]
    (tmp_path / 'boxes.csv').write_text('\n'.join([header, *rows]))
    assert objects_of(tmp_path)[1][0]['bbox'] == [8, 9, 22, 22]


def test_a_table_that_was_made_from_voc_files(tmp_path):
    """It tells nothing new but the splits."""
    make(tmp_path, 'voc')
    shutil.rmtree(tmp_path / 'ImageSets')
    for name, numbers in dict(all=range(10), train=range(7), test=range(7, 10)).items():
        rows = (f'a.{i}.png,{NAMES[i % 2]},8,9,30,31' for i in numbers)
        text = '\n'.join(['filename,class,xmin,ymin,xmax,ymax', *rows])
        (tmp_path / f'{name}_labels.csv').write_text(text)
    found = OwnData(tmp_path, 'det')
    assert [len(x) for x in found.photos.values()] == [7, 3, 3]


@pytest.mark.parametrize('num', [1, 2, 4])
def test_few_photos(tmp_path, num):
    """One is held back, and one is not enough."""
    make(tmp_path, 'boxes', num)
    if num == 1:
        with pytest.raises(ValueError, match='too few photos'):
            OwnData(tmp_path, 'det')
    else:
        assert [len(x) for x in OwnData(tmp_path, 'det').photos.values()] == [
            *(num - 1, 1, 1)
        ]


def test_a_pattern_chooses_among_labels(tmp_path):
    make(tmp_path, 'voc')
    for i in range(10):
        (tmp_path / f'a.{i}.txt').write_text('0 .5 .5 .25 .25')
    with pytest.raises(ValueError, match='several files annotate.*--labels'):
        OwnData(tmp_path, 'det')
    for labels in ('Annotations', '*.xml'):
        assert OwnData(tmp_path, 'det', labels=labels).classes == ['blue', 'red']
    assert OwnData(tmp_path, 'det', labels='*.txt').classes == ['class 0']


@pytest.mark.parametrize('kind', ['labelme', 'cvat', 'yolo'])
def test_label_maps_from_outlines(tmp_path, kind):
    label(tmp_path, kind)
    found = OwnData(tmp_path, 'seg')
    assert found.classes == ['background', 'blue', 'red']
    assert any('drawn from outlines' in note for note in found.notes)
    labels = labels_of(found, tmp_path / 'out')
    (path,) = [*(tmp_path / 'out/labels').rglob('1.jpg.png')]
    assert np.array(Image.open(path))[20, 20] == 1  # blue
    assert labels[0, 0] == 0 and 480 <= (labels > 0).sum() <= 530


def test_corners_in_place_of_sides(tmp_path):
    change(make(tmp_path, 'boxes') / 'labels.json', bbox=[30, 20, 60, 40])
    assert any('corners instead of sides' in x for x in OwnData(tmp_path, 'det').notes)


def test_circles(tmp_path):
    shape = dict(label='red', points=[[30, 20], [40, 20]], shape_type='circle')
    for path in ten_photos(tmp_path):
        text = json.dumps(dict(shapes=[shape], imagePath=path.name))
        path.with_suffix('.json').write_text(text)
    found, objects = objects_of(tmp_path)
    assert objects[0]['bbox'] == pytest.approx([20, 10, 20, 20]) and found.masks


@pytest.mark.parametrize(
    'image, mask',
    [
        ('images/{}.jpg', 'masks/mask_{}.png'),
        ('images/image_{}.jpg', 'masks/mask_{}.png'),
        ('x{}.jpg', 'mask_x{}.png'),
        ('x{}.jpg', 'x{}_seg.png'),
        ('x{}.JPG', 'x{}.png'),
    ],
)
def test_names_of_label_maps(tmp_path, image, mask):
    ten_photos(tmp_path, image)
    for i in range(10):
        label_map(tmp_path / mask.format(i), (0, 1))
    found = OwnData(tmp_path, 'seg')
    for x in chain(*found.photos.values()):
        assert x['path'].stem[-1] in x['map'].stem and x['map'].suffix == '.png'


def colored(data, table=True):
    """Label maps in colors."""
    for i in range(10):
        photo(data / f'images/{i}.png')
        ids = np.zeros((48, 64, 3), np.uint8) + np.uint8([9, 0, 200])
        ids[9:31, 8:30] = 128, 64, 0
        (data / 'masks').mkdir(exist_ok=True)
        Image.fromarray(ids).save(data / f'masks/{i}.png')
    if table:
        (data / 'class_dict.csv').write_text('name,r,g,b\nsky,9,0,200\nroad,128,64,0\n')
    return data


def labels_of(found, out):
    found.write(out)
    return np.array(Image.open(next((out / 'labels').rglob('*.png'))))


@ONE_STACK
def test_label_maps_in_colors(tmp_path):
    data = colored(tmp_path / 'my')
    found = OwnData(data, 'seg')
    labels = labels_of(found, tmp_path / 'out')
    assert found.classes == ['sky', 'road']
    assert labels[20, 20] == 1 and labels[0, 0] == 0
    table = 'no R G B\n1\t9\t0\t200\tsky\n2 \t128\t64 \t0\troad\n'
    (data / 'class_dict.csv').write_text(table)
    assert OwnData(data, 'seg').classes == ['sky', 'road']
    (data / 'class_dict.csv').unlink()
    with pytest.raises(ValueError, match=r'have colors, 9,0,200 \(84.2%\); 128,64,0'):
        OwnData(data, 'seg')
    found = OwnData(data, 'seg', colors=['a=128,64,0', 'b=9,0,200'])
    assert labels_of(found, tmp_path / 'out')[20, 20] == 0


@ONE_STACK
@pytest.mark.parametrize('same', [True, False])
def test_palettes(tmp_path, same):
    """The indices are ids if all files have one palette; otherwise colors are."""
    data = colored(tmp_path / 'my', False)
    for i in range(10):
        path = data / f'masks/{i}.png'
        image = Image.fromarray(np.uint8(np.array(Image.open(path))[..., 2] == 0))
        image = image.convert('L').point(lambda x, i=i: x if same or i else 1 - x)
        colors = [9, 0, 200], [128, 64, 0]
        first, second = colors if same or i else colors[::-1]
        image.putpalette(first + second)
        image.save(path)
    if same:
        assert OwnData(data, 'seg').classes == ['class 0', 'class 1']
        return
    with pytest.raises(ValueError, match='have colors, 9,0,200'):
        OwnData(data, 'seg')
    found = OwnData(data, 'seg', colors=['a=9,0,200', 'b=128,64,0'])
    for path in data.glob('masks/*'):
        labels = found.maps.labels(dict(map=path, size=(64, 48)))
        assert labels[20, 20] == 1 and labels[0, 0] == 0


def test_masks_with_blurred_borders(tmp_path):
    """As JPEG leaves them; ids of other masks in JPEG are not exact."""
    data = colored(tmp_path / 'my', False)
    rows, columns = np.mgrid[:48, :64]
    for i in range(10):
        disk = (rows - 24) ** 2 + (columns - 32) ** 2 < (12 + i) ** 2
        (data / f'masks/{i}.png').unlink()
        Image.fromarray(np.uint8(disk * 255)).save(data / f'masks/{i}.jpg')
    found = OwnData(data, 'seg')
    assert found.classes == ['class 0', 'class 255']
    assert any('grays, as of JPEG' in x for x in found.notes)
    labels = labels_of(found, tmp_path / 'out')
    assert labels[24, 32] == 1 and labels[0, 0] == 0
    for path in data.glob('masks/*'):
        Image.fromarray(np.uint8(np.array(Image.open(path)) > 9)).save(path)
    with pytest.raises(ValueError, match='a label map in JPEG has no exact ids'):
        OwnData(data, 'seg')


def test_masks_of_another_size(tmp_path):
    data = make(tmp_path / 'my', 'black and white')
    for path in data.glob('masks/*'):
        Image.open(path).resize((128, 96), Image.NEAREST).save(path)
    found = OwnData(data, 'seg', resize_masks=True)
    assert any('10 label maps' in x and 'resizes' in x for x in found.notes)
    labels = labels_of(found, tmp_path / 'out')
    assert labels.shape == (48, 64) and labels[20, 20] == 1 and labels[40, 40] == 0


def test_photos_of_several_splits(tmp_path):
    for i in range(8):  # the pixels depend on the length of a name
        folder = f'{"val" if i > 5 else "train"}/{NAMES[i % 2]}'
        photo(tmp_path / folder / f'{"x" * (i + 1)}.jpg')
    shutil.copy(tmp_path / 'train/red/x.jpg', tmp_path / 'val/red/copied.jpg')
    notes = OwnData(tmp_path, 'cls').notes
    (found,) = (x for x in notes if 'are for training, too' in x)
    assert found.startswith('1 photos') and found.endswith('copied.jpg')


@pytest.fixture
def new_config(tmp_path, monkeypatch, capsys):
    """Runs the tool in an empty folder, and reads its config."""
    monkeypatch.chdir(tmp_path)

    def run(kind, *options, task=None):
        make(Path('my'), kind)
        task = task or TASKS[kind]
        argv = ['--data', 'my', '--task', task, '--out', 'mine.py', *options]
        tool.main([*argv, *['--ignore', '11'] * (kind == 'camvid')])
        path = tool.parse_args(argv).out
        return load_config(str(path), warn=pytest.fail), capsys.readouterr().out

    return run


KINDS = dict(det=80, seg=150, cls=1000)


@ONE_STACK
@pytest.mark.parametrize('kind', ['coco', 'camvid', 'classes'])
def test_show(new_config, kind):
    new_config(kind, '--show', 'seen.png')
    assert len(Image.open('seen.png').convert('RGB').getcolors(2**24)) > 1000


def methods():
    """Methods and their backbones, one of each."""
    configs = ROOT / 'configs'
    for task, ending in dict(det='_coco', seg='_ade20k-512x512').items():
        found = {}
        for path in sorted(configs.glob(f'*/*{ending}.py')):
            method, backbone = path.stem.split('_')[:2]
            found.setdefault(method, backbone)
        yield from ((task, *pair) for pair in found.items())
    yield 'cls', 'classifier', 'cait-s24'


@ONE_STACK
@pytest.mark.parametrize('task, method, backbone', [*methods()])
def test_every_method(new_config, monkeypatch, task, method, backbone):
    """All heads have the classes, and nothing else of the model changes."""
    monkeypatch.setattr(tool, 'find_devices', lambda: (1, 8))
    kind = dict(det='coco', seg='camvid', cls='classes')[task]
    cfg, _ = new_config(kind, '--detector', method, '--backbone', backbone)
    num = 3 if task == 'seg' else 2
    base = re.search('_base_ = .*', Path('mine.py').read_text())[0]
    Path('base.py').write_text(base)
    model = load_config('base.py').model
    if task == 'seg':
        model.data_preprocessor.size = (128, 171)
    text = repr(model.to_dict())
    for key in ('num_classes', 'num_things_classes'):
        text = text.replace(f"'{key}': {KINDS[task]}", f"'{key}': {num}")
    ones = ', '.join(['1.0'] * KINDS[task])
    text = text.replace(f'[{ones}, 0.1]', f'[{", ".join(["1.0"] * num)}, 0.1]')
    assert cfg.model.to_dict() == literal_eval(text) != model.to_dict()


@ONE_STACK
@pytest.mark.parametrize(
    'kind, name',
    [('voc', 'bbox_head'), ('coco', 'rpn_head'), ('camvid', 'decode_head')],
)
def test_without_a_gpu(new_config, kind, name):
    """Pyramid and heads are narrow and fit each other."""
    cfg, out = new_config(kind, '--backbone', 'softpp-micro-linear')
    assert 'no GPU: pyramid and heads have 128 channels' in out
    head = build_model(cfg).get_submodule(name)
    assert getattr(head, 'feat_channels', getattr(head, 'channels', None)) == 128


@ONE_STACK
def test_what_it_chooses(new_config, monkeypatch):
    monkeypatch.setattr(tool, 'find_devices', lambda: (2, 80))
    cfg, out = new_config('coco', '--backbone', 'softpp-t', '--epochs', '24')
    metrics = {x.get('prefix'): x.metric for x in cfg.val_evaluator}
    assert metrics == {None: 'bbox', 'masks': 'segm'} and cfg.pretrained is None
    rows = [x.split() for x in out.splitlines()]
    assert ['red', '4', '1', '1'] in rows
    assert rows[0] == ['files:', '3', '.json,', '10', 'photo']
    assert 'no GPU' not in out and 'scratch' in out and 'dist_train.sh mine.py 2' in out
    assert cfg.param_scheduler[1].end == 24 * 4 and cfg.param_scheduler[0].end == 10
    assert cfg.optim_wrapper.optimizer.lr == pytest.approx(4e-4 * (2 / 16) ** 0.5, 0.05)
    cfg, out = new_config('voc', '--overwrite')
    assert cfg.pretrained.endswith('swin_tiny_patch4_window7_224.pth')
    assert cfg.model.type == 'RetinaNet'
    shutil.rmtree('my')
    cfg, _ = new_config('classes', '--overwrite')
    assert cfg.pretrained.endswith('swin_tiny_patch4_window7_224.pth')


@ONE_STACK
def test_a_training_says_little(new_config, monkeypatch, capsys):
    new_config('classes', '--backbone', 'softpp-t', '--epochs', '1')
    options = [f'{x}_dataloader.num_workers=0' for x in ('train', 'val')]
    options += [f'{x}_dataloader.persistent_workers=False' for x in ('train', 'val')]
    monkeypatch.setattr(sys, 'argv', ['train.py', 'mine.py', '--cfg-options', *options])
    capsys.readouterr()
    load_module('tools/train.py').main()
    told = capsys.readouterr()
    before, after = told.out.split('Epoch(train)', 1)
    assert before.count('\n') + told.err.count('\n') <= 40
    assert 'eta: ' in after and 'single-label/recall_classwise' in after
    shown = re.findall(r'^(\w+): ', after[after.index('\n\n') :], re.M)
    assert shown == [
        *('score', 'checkpoint', 'curves', 'pictures'),
        *('log', 'test', 'predict', 'export'),
    ]
    (log,) = Path('work_dirs').rglob('*.log')
    assert len(log.read_text().splitlines()) > 300


@ONE_STACK
def test_one_photo_for_training(new_config, error_of):
    """A detector trains on it, and a batch of two is refused."""
    photo(Path('my/train/0.jpg'))
    photo(Path('my/val/0.jpg'))
    for split in ('train', 'val'):
        coco(Path(f'my/{split}/{split}.json'), ['red'], masks=False)
    argv = ['--backbone', 'softpp-t', '--epochs', '1']
    cfg, out = new_config('', *argv, '--out', 'my mine.py', task='det')
    warmup, cosine = cfg.param_scheduler
    assert warmup.end == cosine.begin < cosine.end
    assert "train.py 'my mine.py'" in out
    shutil.rmtree('my')
    for split in ('train', 'val'):
        photo(Path(f'my/{split}/images/0.png'))
        label_map(Path(f'my/{split}/labels/0.png'), (0, 1))
    assert 'fewer than a batch of 2' in error_of(new_config, '', *argv, task='seg')


@pytest.mark.parametrize(
    'block',
    [0, *(pytest.param(x, marks=y) for x, y in ((1, LONG), (2, LONG), (3, ONE_STACK)))],
)
def test_from_folder_to_predictions(new_config, monkeypatch, block, capsys):
    """It trains, and runs the code of the page on predicting."""
    library = re.search(r'from (mm\w+)', BLOCKS[block])[1]
    kind = dict(mmdet='voc', mmseg='camvid', mmpretrain='classes')[library]
    options = ['--backbone', 'softpp-t', '--epochs', '2']
    cfg, out = new_config(kind, *options)
    program, script, _ = out.splitlines()[-1].split()
    assert program == sys.executable and Path(script).is_file()
    check_data(cfg, 'train', build_model(cfg), pytest.fail)
    cfg.work_dir, cfg.launcher = 'work_dirs/mine', 'none'
    for name in ('train', 'val'):
        cfg[f'{name}_dataloader'].update(num_workers=0, persistent_workers=False)
    cfg.default_hooks.visualization.interval = 1
    if library == 'mmdet':  # after ten iterations, nothing has a score
        cfg.model.test_cfg.update(score_thr=0.0, max_per_img=5)
    Runner.from_cfg(cfg).train()
    cfg.dump('work_dirs/mine/mine.py')
    assert any(Path('work_dirs').rglob('vis_image/*'))

    frames = [cv2.imread(f'{photo("" / Path(f"photos/{x}.png"), x)}') for x in NAMES]
    video = cv2.VideoWriter('film.avi', cv2.VideoWriter_fourcc(*'MJPG'), 5, (64, 48))
    for frame in frames:
        video.write(frame)
    video.release()
    capsys.readouterr()
    monkeypatch.setattr(sys, 'stdin', None)
    scope = {}
    exec(BLOCKS[block].replace('0.5', '0.0'), scope)  # noqa: S102
    lines = [x for x in capsys.readouterr().out.splitlines() if x]
    assert len(lines[-2:]) == 2
    names = scope.get('names') or scope.get('detector', scope.get('classifier'))
    if library == 'mmseg':
        assert scope['segmentor'].visualizer.dataset_meta['classes'] == names
        assert "'class 0':" in lines[-1]
    elif 'VideoCapture' not in BLOCKS[block]:
        assert re.search('blue|red', lines[-1])
    if 'found' in BLOCKS[block]:
        assert any(Path('found').rglob('*.*g'))


@ONE_STACK
@pytest.mark.parametrize(
    'kind, argv, message',
    [
        ('voc', '--data no', '--data no: there is no such folder'),
        ('voc', '--out mine.txt', 'the name of a config must end in .py'),
        ('voc', '--out my/mine.py', '--out my/mine.py is in the folder --data: give'),
        ('voc', '--out ../my.py', 'my_data is not an empty folder and was not written'),
        ('voc', '--task seg', '10 objects have boxes without outlines'),
        ('classes', '--task det', 'it has no data for --task det'),
        ('voc', '--detector mask-rcnn', 'mask-rcnn needs outlines, found only boxes'),
        ('voc', '--detector yolo', 'no config has --detector yolo and'),
        ('voc', '--backbone soft-x', 'no config has --detector retinanet and --back'),
        ('voc', '--classes red green', 'no photo for training has green; their cl'),
        ('camvid', '--classes a b', 'label maps have the ids 0 ('),
        ('camvid', '--classes a b c', '11 (8.3%), and --classes 3 names'),
    ],
)
def test_bad_input(tmp_path, monkeypatch, error_of, kind, argv, message):
    folder = tmp_path / 'here'
    make(folder / 'my', kind)
    photo(tmp_path / 'my_data' / 'a.png')
    monkeypatch.chdir(folder)
    defaults = ['--data', 'my', '--task', TASKS[kind], '--out', 'mine.py']
    assert message in error_of(tool.main, [*defaults, *argv.split()])
    assert {x.name for x in [*folder.iterdir(), *tmp_path.iterdir()]} == {
        *('my', 'here', 'my_data')
    }


def of_labels(function, *args, **values):
    """Damage to labels.json."""
    return lambda data: function(data / 'labels.json', *args, **values)


def to_all(pattern, function, *args):
    """Damage to some files."""
    return lambda data: [function(path, *args) for path in [*data.glob(pattern)]]


def write_ids(path):
    ids = np.arange(64 * 48, dtype=np.uint16).reshape(48, 64)
    Image.fromarray(ids).save(path)


FIRST_MAP = 'trainannot/0.png'


@ONE_STACK
@pytest.mark.parametrize(
    'kind, damage, message',
    [
        (
            'boxes',
            of_labels(coco, ['red'] * 11, 'images/'),
            '1 of 11 photos with annotations are missing in .*10.jpg',
        ),
        ('boxes', of_labels(Path.unlink), 'it has 10 photo files: compare_predictions'),
        ('boxes', of_labels(Path.write_text, '{'), 'labels.json: Expect'),
        ('boxes', of_labels(replace, '{"id": 1', '{"id": 0'), 'two of its images have'),
        ('boxes', of_labels(replace, 'ory_id": 5', 'ory_id": 9'), r'y \(9\) is not in'),
        (
            'boxes',
            of_labels(change, 'images', width=48, height=64),
            '64 x 48 pixels.* says 48 x 64: ',
        ),
        ('boxes', of_labels(change, iscrowd=1), 'all objects are crowds'),
        ('boxes', of_labels(change, bbox=None), 'labels.json: annotation 0 has no box'),
        ('boxes', of_labels(change, bbox=[1, 2, 3, np.nan]), 'annotation 0 has no box'),
        ('boxes', lambda x: coco(x / 'more.json', ['blue']), 'several files annotate'),
        ('voc', to_all('Ann*/a.[12].xml', Path.write_text, '<'), 'a.1.xml: ParseError'),
        ('voc', to_all('JPEGImages/a.3.png', Path.unlink), '1 of 10 photos .* a.3'),
        ('black and white', to_all('masks/*', label_map, (0, 0)), 'only, class 0'),
        ('camvid', to_all('val/9.png', Path.unlink), '1 of 10 photos with annotations'),
        (
            'camvid',
            to_all(FIRST_MAP, label_map, (0, 1), (60, 40)),
            r'0.png, \(40, 60\) instead of \(48, 64\): --resize-',
        ),
        (
            'camvid',
            to_all(FIRST_MAP, write_ids),
            r'have the ids 0 \(.*49 \(0.0%\), and --classes 0 names',
        ),
        (
            'camvid',
            to_all(FIRST_MAP, photo),
            r'have colors, 0,0,0 \(68.3%\); .*name them in',
        ),
        (
            'camvid',
            to_all('valannot/*', Path.write_bytes, b''),
            'left out 2 label maps that can not be read',
        ),
    ],
)
def test_damaged_data(tmp_path, kind, damage, message):
    damage(make(tmp_path, kind))
    with pytest.raises((FileNotFoundError, ValueError), match=message):
        OwnData(tmp_path, TASKS[kind])
