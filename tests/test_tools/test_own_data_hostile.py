"""Own data that are broken or hostile: a line within a moment, and nothing lost in
silence."""

import os
import re
from functools import partial
from itertools import chain

import numpy as np
import pytest
from own_folders import (
    BOX,
    OUTLINE,
    SQUARE,
    coco,
    grow,
    label_map,
    labelme_mask,
    photo,
    yolo,
)

from mmlinattn.own_data import Options, OwnData

pytestmark = pytest.mark.openmmlab
IN_IMAGES = {'images/{i}.jpg': photo}
LINES = {'labels/{i}.txt': partial(yolo, outline=False)}
LEVELS = 'abcdefghi'
BOMB = 'a: &a [x,x,x,x,x,x,x,x,x,x]\n' + ''.join(
    f'{name}: &{name} [{",".join([f"*{below}"] * 10)}]\n'
    for below, name in zip(LEVELS, LEVELS[1:])
)


def read(root, task='det', **options):
    return OwnData.from_folder(Options(root, task, **options))


def notes_of(data):
    return '\n'.join(map(str, data.notes))


def objects_of(data):
    photos = {x.path: x for x in chain(*data.splits.values())}
    return {path.stem: x.objects for path, x in photos.items()}


@pytest.mark.parametrize(
    'tree, message',
    [
        ({'a.json': '[' * 200_000}, 'a.json: its lists are nested too deeply'),
        ({'a.json': '{"a":' * 200_000}, 'a.json: its lists are nested too deeply'),
        (
            {'a.csv': f'photo,class\n0,"{"x" * 200_000}"'},
            'a.csv: it is no table: field',
        ),
        ({**LINES, 'data.yaml': f'{"[" * 5000}names: x'}, 'data.yaml: '),
    ],
)
def test_files_that_can_not_be_read(tmp_path, tree, message):
    grow(tmp_path, {**IN_IMAGES, **tree})
    with pytest.raises(ValueError, match=message):
        read(tmp_path)


def test_lists_of_lists_are_no_names(tmp_path):
    """Their text would be longer than any memory."""
    grow(tmp_path, {**IN_IMAGES, **LINES, 'a.yaml': f'{BOMB}names: *i'})
    assert read(tmp_path).classes == ['class 0', 'class 1']
    (tmp_path / 'a.yaml').write_text(f'{BOMB}names: {{0: a, 1: *i}}\ntrain: x')
    with pytest.raises(ValueError, match='a.yaml: its names are lists, not text'):
        read(tmp_path)
    maps = {'masks/{i}.png': label_map(0, 1), 'labels.yaml': f'{BOMB}names: *i'}
    grow(tmp_path / 'maps', {**IN_IMAGES, **maps})
    assert read(tmp_path / 'maps', 'seg').classes == ['class 0', 'class 1']


@pytest.mark.parametrize('name', ['x.jpg', 'x.json', 'x.txt', 'masks/x.png'])
def test_pipes_are_no_files(tmp_path, name):
    """Reading one has no end."""
    grow(tmp_path, {**IN_IMAGES, 'a.json': coco(), 'masks/{i}.png': label_map(0, 1)})
    os.mkfifo(tmp_path / name)
    assert len(objects_of(read(tmp_path, images='images'))) == 10
    assert read(tmp_path, 'seg').classes == ['class 0', 'class 1']


def test_links_that_lead_to_no_file(tmp_path):
    grow(tmp_path, {**IN_IMAGES, 'a.json': coco()})
    (tmp_path / 'images/x.jpg').symlink_to(tmp_path / 'nowhere.jpg')
    assert 'ignored 1 links that lead to no file' in notes_of(read(tmp_path))
    grow(tmp_path / 'b', {'a.json': coco()})
    (tmp_path / 'b/0.jpg').symlink_to(tmp_path / 'nowhere.jpg')
    with pytest.raises(ValueError, match='photos with annotations are missing'):
        read(tmp_path / 'b')


# ------------------------------------------------------------------- outlines
FAR = 'outlines reach far'
WRONG = {
    FAR: [[0, 0, 1e9, 0, -1e9, 9]],
    'another size': dict(size=[64, 48], counts=[64 * 48]),
    'do not add up': dict(size=[48, 64], counts=[3, 5]),
    'add up to their size': dict(size=[48, 64], counts='~~~PPPP1212'),
}


@pytest.mark.parametrize('task', ['det', 'seg', 'rot'])
@pytest.mark.parametrize('kind', WRONG)
def test_outlines_that_can_not_be_drawn(tmp_path, kind, task):
    """One of them loses its outline, and keeps its box; more are refused."""
    content = coco(range(20), **OUTLINE)
    content['annotations'][3]['segmentation'] = WRONG[kind]
    grow(tmp_path, {**IN_IMAGES, 'a.json': content}, range(20))
    data = read(tmp_path, task)
    text = f'1 of 20 outlines can not be drawn, and are ignored: .*{kind}.*3.jpg'
    assert re.search(text, notes_of(data))
    (item,) = objects_of(data)['3']
    assert item.bbox == pytest.approx(BOX) and item.area == pytest.approx(484)
    for entry in content['annotations']:
        entry['segmentation'] = WRONG[kind]
    grow(tmp_path, {'a.json': content})
    with pytest.raises(
        ValueError, match=f'20 of 20 outlines can not be drawn: .*{kind}'
    ):
        read(tmp_path, task)


def test_boxes_of_outlines_that_can_not_be_drawn(tmp_path):
    """An object that has nothing else is ignored."""
    content = coco(range(20), **OUTLINE)
    content['annotations'][3].update(bbox=None, segmentation=WRONG[FAR])
    grow(tmp_path, {**IN_IMAGES, 'a.json': content}, range(20))
    data = read(tmp_path)
    assert '1 of 20 outlines can not be drawn' in notes_of(data)
    assert not objects_of(data)['3'] and len(objects_of(data)['4']) == 1


@pytest.mark.parametrize('counts', [[3, 5], '~~', None])
def test_run_lengths_without_a_box(tmp_path, counts):
    content = coco(bbox=None, segmentation=dict(size=[48, 64], counts=counts))
    grow(tmp_path, {**IN_IMAGES, 'a.json': content})
    with pytest.raises(
        ValueError, match='a.json: (masks have run|annotation 0 has no b)'
    ):
        read(tmp_path)


def test_two_outlines_of_one_box(tmp_path):
    """Two halves of a square are two objects, and the same half twice is one."""
    halves = [[8, 9, 30, 9, 30, 31], [8, 9, 30, 31, 8, 31], [30.2, 31, 8, 9, 8, 31]]
    content = coco()
    entry = content['annotations'][0]
    for i, half in enumerate([*halves, halves[0], None]):
        outline = dict(segmentation=[half] if half else [])
        content['annotations'].append({**entry, **outline, 'id': 20 + i})
    grow(tmp_path, {**IN_IMAGES, 'a.json': content})
    data = read(tmp_path)
    outlines = [item.outline.polygons[0] for item in objects_of(data)['0']]
    assert sorted(outlines) == sorted(map(tuple, halves))
    assert 'ignored 3 duplicate objects' in notes_of(data)


def test_masks_that_are_no_pictures(tmp_path):
    """One costs its photo."""

    def shapes(i):
        content = labelme_mask(i)
        if i == 3:
            content['shapes'][0]['mask'] = 'aaaa'
        return content

    data = read(grow(tmp_path, {'{i}.jpg': photo, '{i}.json': shapes}))
    assert 'ignored 1 annotation files that are damaged' in notes_of(data)
    assert 'a mask is no picture' in notes_of(data) and len(objects_of(data)) == 9


def test_masks_beyond_the_edge(tmp_path):
    """What is in the photo is kept, and a mask of other places is not."""

    def shapes(i):
        content = labelme_mask(i)
        content['shapes'][0]['points'] = [[-10, 40], [11, 61]]
        return content

    data = read(grow(tmp_path, {'{i}.jpg': photo, '{i}.json': shapes}))
    (item,) = objects_of(data)['0']
    mask = item.outline.mask((64, 48))
    assert mask[40:, :12].all() and mask.sum() == 8 * 12


@pytest.mark.parametrize('runs', ['1, 2, 900', '1, -2', '1.5', 'x'])
def test_runs_of_cvat_that_do_not_fit(tmp_path, runs):
    sides = 'left="1" top="1" width="9" height="9"'
    image = f'<image name="0.jpg"><mask label="a" {sides} rle="{runs}"/></image>'
    grow(tmp_path, {**IN_IMAGES, 'a.xml': f'<annotations>{image}</annotations>'})
    with pytest.raises(ValueError, match='a.xml: the runs of a mask are not for 9 x 9'):
        read(tmp_path)


# -------------------------------------------------------------------- classes
def test_classes_that_are_not_learned(tmp_path):
    """Those of crowds alone, and those of validation alone, are said."""
    categories = ('red', 'blue', 'sheep', 'late')
    content = coco(range(8), categories=categories, **OUTLINE)
    held = coco(range(8, 10), categories=categories, **OUTLINE)
    crowd = {**content['annotations'][0], 'id': 90, 'iscrowd': 1, 'category_id': 7}
    content['annotations'].append({**crowd, 'bbox': [1, 1, 9, 9]})
    held['annotations'].append({**held['annotations'][0], 'id': 91, 'category_id': 8})
    tree = {'{split}/{i}.jpg': photo, 'train.json': content, 'val.json': held}
    data = read(grow(tmp_path, tree))
    assert data.classes == ['blue', 'red']
    assert 'crowds or difficult alone: sheep' in notes_of(data)
    assert 'no photo for training has: late' in notes_of(data)
    with pytest.raises(ValueError, match='no photo for training has sheep'):
        read(tmp_path, classes=['red', 'sheep'])


@pytest.mark.parametrize('task', ['det', 'seg'])
def test_what_labelme_ignores(tmp_path, task):
    """It is no class of objects, and no label of pixels."""

    def shapes(i):
        content = labelme_mask(i)
        ignored = dict(label='__ignore__', points=[[0, 0], [9, 0], [9, 5], [0, 5]])
        content['shapes'].append(ignored)
        return content

    data = read(grow(tmp_path, {'{i}.jpg': photo, '{i}.json': shapes}), task)
    assert data.classes == ['background'] * (task == 'seg') + ['blue', 'red']
    assert '__ignore__ is no class: it ignores 10 objects' in notes_of(data)
    if task == 'seg':
        labels = data.label_maps.labels(data.splits['train'][0])
        assert labels[2, 2] == 255 and labels[20, 20] in (1, 2) and labels[40, 40] == 0


@pytest.mark.parametrize('task', ['det', 'seg', 'cls'])
def test_the_same_photo_with_other_labels(tmp_path, task):
    """Copies are fine if their labels are the same."""
    same = {'images/{i}.jpg': photo, 'images/x.jpg': photo(0), 'images/y.jpg': photo(1)}
    names = [*map(str, range(10)), 'x', 'y']
    tree = dict(same)
    if task == 'det':
        content = coco()
        for k, name in ((10, 'x'), (11, 'y')):
            content['images'].append(dict(id=k, file_name=f'{name}.jpg'))
            entry = dict(content['annotations'][k - 10], id=k, image_id=k)
            entry['bbox'] = [20, 9, 22, 22] if name == 'x' else BOX
            content['annotations'].append(entry)
        tree['a.json'] = content
    elif task == 'seg':
        tree.update({f'masks/{name}.png': label_map(0, 1) for name in names})
        tree['masks/x.png'] = label_map(1, 0)
    else:
        rows = [f'{name},{"b" if name == "x" else "a"}' for name in names[:-2]]
        tree['a.csv'] = '\n'.join(['photo,class', *rows, '1,a', 'x,b', 'y,a'][:-3])
        tree['a.csv'] += '\nx,b\ny,a'
    notes = notes_of(read(grow(tmp_path, tree), task))
    assert '1 photos have duplicates with different labels, such as' in notes
    assert re.search(r'(0|x).jpg and .*(0|x).jpg', notes)


# ---------------------------------------------------------------------- names
def test_blanks_before_a_name(tmp_path):
    """Libraries strip the lines of a list."""
    from mmlinattn.own_data import write

    tree = {' a/{i}.jpg': photo, 'b/x{i}.jpg': partial(photo, size=(60, 48))}
    data = read(grow(tmp_path / 'my', tree), 'cls')
    write(data, tmp_path / 'out')
    for line in (tmp_path / 'out/train.txt').read_text('utf-8').splitlines():
        assert (tmp_path / 'my' / line.strip().rpartition(' ')[0]).is_file()


def test_tables_of_boxes_alone(tmp_path):
    rows = '\n'.join(f'{i}.jpg,8,9,30,31' for i in range(10))
    tree = {**IN_IMAGES, 'a.csv': f'image,xmin,ymin,xmax,ymax\n{rows}'}
    data = read(grow(tmp_path, tree))
    assert data.classes == ['object']
    assert {objects[0].bbox for objects in objects_of(data).values()} == {tuple(BOX)}


def test_corners_in_cells(tmp_path):
    """Where the last two numbers are always larger, they are corners."""
    lines = [f'{i}.jpg,"[{i}, {i}, {i + 20}, {i + 25}]",a' for i in range(10)]
    tree = {**IN_IMAGES, 'a.csv': '\n'.join(['image,bbox,label', *lines])}
    data = read(grow(tmp_path, tree))
    assert 'boxes are read as x1, y1, x2, y2' in notes_of(data)
    boxes = np.array([objects[0].bbox for objects in objects_of(data).values()])
    assert (boxes[:, 2:] == (20, 25)).all()


def test_centers_in_parts_of_photos(tmp_path):
    """x, y, w and h of YOLO would reach over the edge as corners."""
    x, y = (SQUARE[0] + 11) / 64, (SQUARE[1] + 11) / 48
    lines = [f'{i}.jpg,{x},{y},{22 / 64},{22 / 48},a' for i in range(9)]
    lines.append(f'9.jpg,0.9,0.9,{1 / 8},{1 / 8},a')
    tree = {**IN_IMAGES, 'a.csv': '\n'.join(['image,x,y,w,h,label', *lines])}
    objects = objects_of(read(grow(tmp_path, tree)))
    assert objects['0'][0].bbox == pytest.approx(BOX)
