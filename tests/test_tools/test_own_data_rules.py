"""Rules of own data, each at its bounds: names, lists, classes, photos, pictures."""

import gc

import cv2
import numpy as np
import pytest
from matplotlib.figure import Figure
from own_folders import OUTLINE, SQUARE, coco, color_map, grow, label_map, photo, table
from PIL import Image

from mmlinattn.own_data import Options, OwnData, checks, headers, pictures, splits
from mmlinattn.own_data.folder import Folder
from mmlinattn.own_data.matching import PhotoIndex
from mmlinattn.own_data.readers import base, box_tables, tables
from mmlinattn.own_data.records import Object, Outline, Photo
from mmlinattn.own_data.texts import as_numbers, read_text
from mmlinattn.own_data.words import split_of_name, stem_of, words_of


def read(root, task):
    return OwnData.from_folder(Options(root, task))


def objects(*boxes):
    return tuple(Object('a', box, box[2] * box[3]) for box in boxes)


# ---------------------------------------------------------------- names and lists
def index_of(root, *names):
    grow(root, {name: photo(0) for name in names})
    folder = Folder(Options(root, 'det'))
    return PhotoIndex(folder)


def test_the_nearest_photo(tmp_path):
    names = 'train/a/1.jpg', 'val/a/1.jpg', 'val/b/1.png', 'train/images/2.jpg'
    index = index_of(tmp_path, *names, 'train/depth/2.jpg', 'x/3.jpg')

    def find(name, near):
        path = index.find(name, tmp_path / near)
        return path and path.relative_to(tmp_path).as_posix()

    assert find('a/1.jpg', 'val/a.json') == 'val/a/1.jpg'
    assert find('1.png', 'val/a.json') == 'val/b/1.png'
    assert find('C:\\y\\a\\1.JPG', 'train/a.json') == 'train/a/1.jpg'
    assert find('2.jpg', 'train/a.json') == 'train/images/2.jpg'
    assert find('3.bmp', 'a.json') == 'x/3.jpg' and find('4.jpg', 'a.json') is None
    assert index.has('sub/1.tif') and not index.has('11.jpg')
    match = index.match('a/1.jpg', tmp_path / 'val', class_name='c')
    assert (match.split, match.class_name, match.name) == ('val', 'c', 'a/1.jpg')
    assert index.match('9.jpg', tmp_path / 'val').path is None


def test_places_that_options_name(tmp_path):
    tree = {f'{x}/sub/{{i}}.jpg': photo for x in ('a', 'b')}
    grow(tmp_path, {**tree, '.hidden/1.jpg': photo, '__MACOSX/1.jpg': photo}, range(3))

    def count(name):
        folder = Folder(Options(tmp_path, 'det', images=name))
        return len(folder.files['photo'])

    counts = {name: count(name) for name in (None, 'a', 'a/sub', 'sub', '*1.jpg')}
    assert counts == {None: 6, 'a': 3, 'a/sub': 3, 'sub': 6, '*1.jpg': 2}
    assert count('b/sub/1.jpg') == 1
    with pytest.raises(ValueError, match='there is no such place'):
        count('c')
    folder = Folder(Options(tmp_path, 'det'))
    assert folder.below_base(tmp_path / 'a/sub/1.jpg') == '/a/sub'
    text = folder.content()
    assert 'it has 6 photo files: mmlinattn predict' in text
    grow(tmp_path, {'x.csv': 'a'})
    assert 'it has 1 .csv, 6 photo;' in Folder(Options(tmp_path, 'det')).content()


def test_photos_are_assigned(tmp_path):
    """By folders and lists; what neither has is told, or held back."""

    def assign(*rows, lists=()):
        seen = [Photo(tmp_path / name, (64, 48), split=part) for name, part in rows]
        lists = {tmp_path / name: part for name, part in dict(lists).items()}
        parts, notes = splits.assign(seen, lists, tmp_path)
        names = {k: [x.path.name for x in v] for k, v in parts.items()}
        return names, '\n'.join(map(str, notes))

    names, notes = assign(('a', 'train'), ('b', 'val'), ('c', 'test'), ('d', None))
    assert names == dict(train=['a'], val=['b'], test=['c'])
    assert notes.startswith('ignored 1 photos in no split') and notes.endswith('/d')
    names, notes = assign(('a', 'train'), ('c', 'test'))
    assert names == dict(train=['a'], val=['c'], test=['c'])
    assert notes == 'no validation photos: the test photos are used for validation'
    names, notes = assign(('a', 'train'), ('b', 'val'))
    assert names == dict(train=['a'], val=['b'], test=['b'])
    assert notes == 'no test photos: the validation photos are used for testing'
    names, notes = assign(*((x, 'val') for x in 'abcdefghij'))
    assert [len(x) for x in names.values()] == [8, 2, 2] and 'every 5th' in notes
    names, _ = assign(('a', 'train'), ('b', None), lists=dict(b='val'))
    assert names == dict(train=['a'], val=['b'], test=['b'])
    names, _ = assign(('a', None), ('b', None), lists=dict(b='test'))
    assert names == dict(train=['a'], val=['b'], test=['b'])


@pytest.mark.parametrize(
    'count, held', [(1, 1), (2, 1), (4, 1), (5, 1), (9, 1), (10, 2)]
)
def test_photos_are_held_back(tmp_path, count, held):
    """Evenly among classes, and the same ones each time."""
    seen = [
        Photo(tmp_path / f'{i}', (1, 1), class_name='ab'[i % 2]) for i in range(count)
    ]
    groups = [[x] for x in seen]
    train, val = splits.hold_back(groups)
    assert len(val) == held and len(train) == count - held
    assert {x.path for x in train} | {x.path for x in val} == {x.path for x in seen}
    assert splits.hold_back(groups) == (train, val)
    if held == 2:
        assert {x.class_name for x in val} == {'a', 'b'}
    # those of a single source are not together
    train, val = splits.hold_back([seen])
    assert len(val) == held and len(train) == count - held


def test_photos_of_a_source_are_held_back_together(tmp_path):
    seen = [Photo(tmp_path / f'{i}', (1, 1)) for i in range(20)]
    groups = [seen[i : i + 2] for i in range(0, 20, 2)]
    train, val = splits.hold_back(groups)
    assert len(val) == 4 and len(train) == 16
    assert all((x[0] in val) == (x[1] in val) for x in groups)
    # the smallest one, where all are too large
    small, large = seen[:3], seen[3:7]
    for groups in ([small, large], [large, small]):
        assert splits.hold_back(groups) == (large, small)


def test_lists_and_their_notes(tmp_path):
    index = index_of(tmp_path, 'a b.jpg', 'c.jpg', 'd.jpg')
    grow(tmp_path, {'train.txt': 'a b 1\nc.jpg\n\nx\ny\n', 'val.csv': 'id,y\n"d",1\n'})
    grow(tmp_path, {'other.txt': 'd\n'})
    paths = [tmp_path / name for name in ('train.txt', 'val.csv', 'other.txt')]
    split_of, notes = splits.read_lists(index, paths)
    assert {path.name: split for path, split in split_of.items()} == {
        'a b.jpg': 'train',
        'c.jpg': 'train',
        'd.jpg': 'val',
    }
    (note,) = map(str, notes)
    assert note.endswith('train.txt: it has no photos of 2 names')


def test_tables_of_photos(tmp_path):
    def table(text, known=('1.jpg', '2.jpg')):
        (tmp_path / 'a.csv').write_text(text)
        return tables.read_table(tmp_path / 'a.csv', set(known).__contains__)

    content = table('id, Label Name, split\n1.jpg, red, val\n2.jpg, blue, train\n')
    assert content.rows[0] == dict(photo='1.jpg', labelname='red', split='val')
    assert content.names['labelname'] == 'Label Name'
    assert content.class_column(None) == 'labelname'
    assert content.class_column('label name') == 'labelname'
    content = table('1.jpg,8,9,30,31,red\n2.jpg,8,9,30,31,red\n')
    assert content.rows[1]['ymax'] == '31' and content.rows[0]['class'] == 'red'
    boxes, note = box_tables.read_boxes(content, base.ClassNames({}))
    assert note == ''
    assert boxes[0].objects[0].bbox == (8, 9, 22, 22) and boxes[0].size is None
    header = 'filename,width,height,class,xmin,ymin,xmax,ymax\n'
    content = table(header + '1.jpg,64,48,red,8,9,30,31\n2.jpg,64,48,,,,,\n')
    (first, second), note = box_tables.read_boxes(content, base.ClassNames({}))
    assert note == ''
    assert first.size == (64, 48) and len(first.objects) == 1 and not second.objects
    content = table('id,red,blue\n1.jpg,0,1\n2.jpg,0,0\n')
    ((row, name),), is_named = tables.read_classes(content, None)
    assert name == 'blue' and row['photo'] == '1.jpg' and is_named
    assert table('id,x\n3.jpg,1\n') is None and table('1.jpg\n2.jpg\n') is None
    with pytest.raises(ValueError, match='do not fit its header'):
        table('id,x\n1.jpg,1,2\n')
    with pytest.raises(ValueError, match='do not fit its header'):
        table('id,x,x\n1.jpg,1,2\n')


def test_sources_of_boxes_are_no_classes(tmp_path):
    row = '{i}.jpg,"[8, 9, 22, 22]",lab {i}'
    tree = {'{i}.jpg': photo, 'a.csv': table('image_id,bbox,source', row)}
    assert read(grow(tmp_path, tree), 'det').classes == ['object']


def test_names_of_no_label_are_classes_by_an_option(tmp_path):
    tree = {
        'images/{i}.png': photo,
        'masks/{i}.png': color_map((0, 0, 0), (128, 64, 0)),
        'class_dict.csv': 'name,r,g,b\nvoid,0,0,0\nroad,128,64,0\nsky,9,0,200\n',
    }
    data = read(grow(tmp_path, tree), 'seg')
    assert data.classes == ['road', 'sky']
    labels = data.label_maps.labels(data.splits['val'][0])
    assert labels[20, 20] == 0 and labels[40, 40] == 255
    options = Options(tmp_path, 'seg', colors=['void=0,0,0', 'road=128,64,0'])
    assert OwnData.from_folder(options).classes == ['void', 'road']


def test_garbage_is_collected_after_errors(tmp_path):
    with pytest.raises(ValueError, match='no data'):
        read(tmp_path, 'det')
    assert gc.isenabled()


def test_texts(tmp_path):
    path = tmp_path / 'a.txt'
    for codec in ('utf-8', 'utf-8-sig', 'utf-16', 'latin-1'):
        path.write_bytes('größe'.encode(codec))
        assert read_text(path) == 'größe'
    assert as_numbers(['1', 2.5]) == [1, 2.5]
    assert as_numbers(['1', 'nan']) is as_numbers([None]) is as_numbers(['x']) is None


def test_names():
    assert stem_of('A.b.JPG') == 'a.b' and stem_of('a.b') == 'a.b'
    assert stem_of('a.csv') == 'a' and stem_of('a.md') == 'a.md'
    assert split_of_name('train_val') is None and split_of_name('cats_train') is None
    assert words_of('x1') == ('x',) and words_of('imagestrain') == ('images', 'train')


# ----------------------------------------------------------------------- checks
def of_classes(tmp_path, *names):
    return [Photo(tmp_path / f'{i}', (1, 1), class_name=x) for i, x in enumerate(names)]


def test_classes_that_are_chosen(tmp_path):
    parts = dict(train=of_classes(tmp_path, *'abb'), val=of_classes(tmp_path, 'c'))
    parts['test'] = []
    classes, (note,) = checks.choose_classes(parts, None, 'cls')
    untrained = 'ignored classes that no photo for training has: c'
    assert classes == ['a', 'b'] and str(note) == untrained
    classes, notes = checks.choose_classes(parts, ['b', 'a'], 'cls')
    assert classes == ['b', 'a'] and list(map(str, notes)) == [untrained]
    classes, notes = checks.choose_classes(parts, ['b'], 'cls')
    assert classes == ['b']
    assert list(map(str, notes)) == ['ignored other classes: a', untrained]
    for wanted in (['a', 'x'], ['c']):
        with pytest.raises(ValueError, match='no photo for training has'):
            checks.choose_classes(parts, wanted, 'cls')
    assert checks.choose_classes(parts, ['background', 'a'], 'seg')[0] == ['a']
    with pytest.raises(ValueError, match='a name is given twice'):
        checks.refuse_repeated_names(['a', 'b', 'a'])
    checks.refuse_repeated_names(['a', 'b'])
    with pytest.raises(ValueError, match='too few photos, 3 for train, 1 for val, 0'):
        checks.check_splits(parts)


def test_outlines_that_are_chosen(tmp_path):
    """A tenth of the objects may lack one."""

    def choose(with_outlines, boxes, task):
        outlined = Object('a', (8, 9, 22, 22), 1, outline=Outline((tuple(SQUARE),)))
        items = (outlined,) * with_outlines + objects((8, 9, 22, 22)) * boxes
        seen = Photo(tmp_path, (64, 48), objects=items)
        masks, stand_in, notes = checks.choose_outlines([seen], task)
        return masks, stand_in, len(notes)

    assert choose(9, 0, 'det') == (True, False, 0)
    assert choose(9, 0, 'rot') == choose(9, 0, 'seg') == (False, False, 0)
    assert choose(19, 1, 'det') == (True, True, 1)
    assert choose(9, 1, 'det') == (False, False, 1)
    assert choose(0, 9, 'det') == (False, False, 0)
    assert choose(19, 1, 'seg') == (False, True, 1)
    assert choose(9, 5, 'rot') == (False, False, 1)
    for task in ('seg', 'rot'):
        with pytest.raises(ValueError, match='they are for --task det'):
            choose(0, 9, task)


# ----------------------------------------------------------------------- photos
def test_headers(tmp_path):
    pixels = photo(0)
    Image.fromarray(pixels).save(tmp_path / 'a.jpg')
    header = headers.read_header(tmp_path / 'a.jpg')
    assert header.size == (64, 48) and not header.is_turned and not header.ends_early
    assert header.depth is None and header.pages == 1 and len(header.digest) == 16
    for orientation, size in ((1, (64, 48)), (3, (64, 48)), (6, (48, 64))):
        exif = Image.Exif()
        exif[0x0112] = orientation
        Image.fromarray(pixels).save(tmp_path / 'b.jpg', exif=exif)
        header = headers.read_header(tmp_path / 'b.jpg')
        assert header.size == size and header.is_turned == (orientation > 1)
    (tmp_path / 'c.jpg').write_bytes(b'')
    assert headers.read_header(tmp_path / 'c.jpg') is None


def test_depths():
    """Bits, bands, gray levels and the range of the numbers."""
    numbers = np.linspace(0, 5119, 48 * 64).round().astype(np.uint16).reshape(48, 64)
    depth = headers.read_depth(cv2.imencode('.png', numbers)[1].tobytes())
    assert (depth.bits, depth.bands, depth.levels) == (16, 1, 20)
    assert depth.low == pytest.approx(51, abs=2)
    assert depth.high == pytest.approx(5068, abs=2)
    for bands, dtype, expected in ((4, np.uint8, (8, 4)), (3, np.uint16, (16, 3))):
        content = cv2.imencode('.tif', np.ones((9, 9, bands), dtype))[1].tobytes()
        depth = headers.read_depth(content)
        assert (depth.bits, depth.bands) == expected
    for shape, kind in (((9, 9, 3), 'tif'), ((9, 9, 4), 'png'), ((9, 9), 'png')):
        content = cv2.imencode(f'.{kind}', np.ones(shape, np.uint8))[1].tobytes()
        assert headers.read_depth(content) is None
    deep = [headers.Depth(16, 1, levels, 3.0 * levels, 99.0) for levels in (4, 9)]
    files = [headers.Header((1, 1), False, False, b'', x) for x in deep]
    (note,) = map(str, headers.depth_notes(['a', 'b'], files))
    assert note.startswith('2 photos have 16 bits') and 'here 12 to 99' in note
    assert ': 4 to 9 gray levels are left' in note and 'bands of 16' not in note


# ---------------------------------------------------------------- a picture of all
def test_what_is_drawn(tmp_path):
    """Lines of boxes, outlines and maps at their places, names and titles."""
    tree = {'{i}.jpg': photo, 'a.json': coco(**OUTLINE)}
    data = read(grow(tmp_path, tree), 'det')
    seen = data.splits['train'][0]
    ax = Figure().subplots()
    pictures.draw(data, seen, ax)
    zoom = 480 / 64
    box, outline = (line.get_xydata() / zoom for line in ax.lines)
    corners = np.reshape([*SQUARE, *SQUARE[:2]], (-1, 2))
    assert np.array_equal(box, corners) and np.array_equal(outline, corners)
    assert [line.get_linestyle() for line in ax.lines] == [':', '-']
    assert ax.get_xlim() == (0, 480) and ax.get_ylim() == (360, 0)
    assert ax.get_title() == seen.path.name
    (text,) = ax.texts
    assert text.get_text() == seen.objects[0].name
    assert text.get_position() == (8 * zoom, 9 * zoom)
    (image,) = ax.images
    pixels = np.asarray(image.get_array())
    assert pixels.shape == (360, 480, 3)
    color = np.array(photo(int(seen.path.stem))[20, 20])
    assert abs(pixels[150, 150].astype(int) - color).max() < 30
    assert pictures.color_of(0) == pytest.approx((1, 0.1, 0.1))
    assert pictures.color_of(1) != pictures.color_of(2)


def test_borders_of_maps_are_drawn(tmp_path):
    tree = {'images/{i}.jpg': photo, 'masks/{i}.png': label_map(0, 1, 255)}
    data = read(grow(tmp_path, tree), 'seg')
    ax = Figure().subplots()
    pictures.draw(data, data.splits['train'][0], ax)
    colors = [line.get_color() for line in ax.lines]
    assert colors[-1] == pictures.GRAY and pictures.color_of(1) in colors
    square = ax.lines[colors.index(pictures.color_of(1))].get_xydata() / 7.5
    assert square.min(0).tolist() == [8.5, 9.5]
    assert square.max(0).tolist() == [29.5, 30.5]


@pytest.mark.parametrize(
    'box, corner, side',
    [
        ((2000, 1500, 20, 20), (1890, 1390), 240),
        ((3990, 2990, 10, 10), (3880, 2880), 120),
        ((0, 0, 10, 4), (0, 0), 120),
    ],
)
def test_a_part_of_a_large_photo(tmp_path, box, corner, side):
    seen = Photo(tmp_path, (4000, 3000))
    window = pictures.choose_window(seen, list(objects(box)))
    assert (window.left, window.top) == corner
    assert (window.width, window.height) == (side, side)
    assert window.zoom == pytest.approx(480 / side)
    for whole in (Photo(tmp_path, (4000, 3000), is_drawn=True), seen):
        items = list(objects(box)) if whole.is_drawn else []
        assert pictures.choose_window(whole, items).width == 4000
    least = pictures.choose_window(seen, list(objects((9, 9, 134, 9))))
    assert least.width == 4000
    assert pictures.choose_window(seen, list(objects((9, 9, 133, 9)))).width < 4000
