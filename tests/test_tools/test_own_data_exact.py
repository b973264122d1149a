"""Own data to the pixel: coordinates, drawn maps, and what is not noted.

The tables of test_own_data.py are read again here.
"""

from collections import Counter
from itertools import chain

import numpy as np
import pytest
from loading import load_module
from own_folders import BOX, SQUARE, grow, label_map, name_of, photo

from mmlinattn.own_data import class_tables, fitting, labelings
from mmlinattn.own_data.map_reader import LabelMap, MapReader, Wanted, count_values
from mmlinattn.own_data.outlines import NO_PIXEL, Patch, encode
from mmlinattn.own_data.readers import base, masks, yolo
from mmlinattn.own_data.readers.yolo_lines import KEYPOINT_LAYOUT, Layout
from mmlinattn.own_data.records import Annotation, Object, Outline, Photo

known = load_module('tests/test_tools/test_own_data.py')


def right_cases(table):
    return pytest.mark.parametrize(
        'name', [name for name, case in table.items() if not case.error]
    )


def read_case(root, case, task):
    known.grow(root, case.tree)
    return known.read(root, task, **case.options)


@right_cases(known.DETECTION)
def test_outlines_and_notes_of_objects(tmp_path, name):
    case = known.DETECTION[name]
    data = read_case(tmp_path / 'my', case, 'det')
    assert known.unexpected(data, case) == []
    if 'objects without' in name or not case.masks:
        return
    for item in chain(*(x.objects for x in known.photos_of(data))):
        mask = item.outline.mask(known.SIZE)
        assert mask.sum() == pytest.approx(22 * 22, abs=50)
        y, x = np.nonzero(mask)
        ends = x.min(), y.min(), x.max(), y.max()
        assert ends == pytest.approx((8, 9, 29.5, 30.5), abs=0.6)
        for polygon in item.outline.polygons:
            assert polygon == pytest.approx(SQUARE)


@right_cases(known.SEGMENTATION)
def test_pixels_and_notes_of_label_maps(tmp_path, name):
    """The ground, the square and, if it has another id, the top."""
    case = known.SEGMENTATION[name]
    data = read_case(tmp_path / 'my', case, 'seg')
    assert known.unexpected(data, case) == []
    is_told = any(known.NO_NAMES in str(note) for note in data.notes)
    assert is_told == case.classes[0].startswith('class ')
    for x in known.photos_of(data):
        square = 1
        if 'outlines' in name:
            square += known.BOTH.index(name_of(known.number_of(x)))
        top = 255 if case.options.get('ignore') else 0
        if name in ('maps that can not be read', 'many ids'):
            top = 0
        labels = data.label_maps.labels(x)
        expected = label_map(0, square, top)
        if 'outlines' in name or top != 255:
            expected[:4] = 0 if 'outlines' in name else expected[5, 0]
        lower = slice(4, None)
        assert np.array_equal(labels[lower], expected[lower]), x.path


@right_cases(known.CLASSES)
def test_notes_of_classes(tmp_path, name):
    case = known.CLASSES[name]
    data = read_case(tmp_path / 'my', case, 'cls')
    assert known.unexpected(data, case) == []
    rows = {row[0]: row[1:] for row in data.overview()}
    assert rows['photos'] == [str(x) for x in case.photos]
    assert {*rows['smallest'], *rows['median'], *rows['largest']} == {'64 x 48'}
    for label in data.classes:
        counts = [sum(x.class_name == label for x in s) for s in data.splits.values()]
        assert rows[label] == [str(x) for x in counts]


# ---------------------------------------------------------------------- objects
def objects(*boxes, **options):
    return tuple(Object('a', box, box[2] * box[3], **options) for box in boxes)


def test_boxes_at_the_edge():
    """A pixel inside is enough, and a tenth of the photo beyond it."""
    boxes = [(-5, 3, 6, 9), (-5, 7, 5.9, 9), (63, 0, 9, 9), (63.2, 4, 9, 9)]
    boxes += [(3, 47, 9, 5.8), (5, 47.2, 9, 5), (0, 0, 70.4, 48), (0, 4, 70.5, 44)]
    boxes += [(0, 0, 64, 52.8), (4, 0, 60, 52.9)]
    fitted = fitting.fit(Annotation('x', objects=objects(*boxes)), (64, 48), 'x')
    counts = fitted.counts
    assert fitted.faults == []
    assert [item.bbox for item in fitted.objects] == [
        box for i, box in enumerate(boxes) if i not in (1, 3, 5)
    ]
    assert counts[fitting.SMALL] == 3 and counts[fitting.REPEATED] == 0
    over = (63, 0, 9, 9), (0, 4, 70.5, 44), (4, 0, 60, 52.9)
    assert counts[fitting.OVER] == len(over)
    assert not any(counts[x] for x in (fitting.RESIZED, fitting.TURNED))


def test_objects_that_are_there_twice():
    """To the pixel, of one class and outline, and crowds apart."""
    box, near, far = (8, 9, 22, 22), (8.4, 8.6, 22, 22.4), (8.6, 9, 22, 22)
    items = [*objects(box, near, far), *objects(box, is_crowd=True)]
    items.append(Object('b', box, 484))
    assert len(fitting.without_repeated(items)) == 4
    corners = (8, 9, 30, 9, 30, 31, 8, 31), (9, 8, 31, 9, 30, 32, 8, 31)
    turned = [Object('a', box, 484, outline=Outline((x,))) for x in corners]
    assert len(fitting.without_repeated(turned)) == 2
    assert turned[0].outline.key == (corners[0],)
    near = Outline((tuple(place + 0.4 for place in corners[0]),))
    assert near.key == turned[0].outline.key
    several = Object('a', box, 1, outline=Outline(corners))
    assert fitting.without_repeated([*turned, several]) == [*turned, several]
    # a box alone repeats an outline in it, and no other box
    boxes = objects(box, (9, 9, 22, 22))
    assert fitting.without_repeated([boxes[0], *turned, boxes[1]]) == [
        *turned,
        boxes[1],
    ]
    square, diagonal = np.ones((22, 22), bool), np.eye(22, dtype=bool)
    for make in (
        lambda pixels: Outline(patch=Patch(8, 9, pixels)),
        lambda pixels: Outline(runs=encode(Patch(8, 9, pixels).in_photo((64, 48)))),
    ):
        items = [
            Object('a', box, 484, outline=make(pixels))
            for pixels in (square, diagonal, square.copy())
        ]
        assert fitting.without_repeated(items) == items[1:]


@pytest.mark.parametrize(
    'said, factors',
    [
        ((128, 96), (0.5, 0.5)),
        ((32, 24), (2, 2)),
        ((65, 48), (64 / 65, 1)),
        ((64, 48.9), (1, 48 / 48.9)),
        ((48, 64), None),
        ((66, 48), None),
        ((64, 50), None),
    ],
)
def test_resized_photos(said, factors):
    annotation = Annotation('x', said, objects((8, 9, 22, 22)))
    if factors is None:
        with pytest.raises(ValueError, match='was turned or cut'):
            fitting.fit(annotation, (64, 48), 'x')
        return
    fitted = fitting.fit(annotation, (64, 48), 'x')
    (item,) = fitted.objects
    expected = [side * factors[i % 2] for i, side in enumerate((8, 9, 22, 22))]
    assert item.bbox == pytest.approx(expected)
    assert item.area == pytest.approx(484 * factors[0] * factors[1])
    assert fitted.counts[fitting.RESIZED] == 1 and fitted.faults == []


@pytest.mark.parametrize('said', [(128, 96), (32, 24), (65, 48), (64, 48.9)])
def test_masks_of_resized_photos(said):
    """Run lengths are resized, if they are of the photo as it was labelled."""
    size = width, height = tuple(map(round, said))
    left, right = (round(x * width / 64) for x in (8, 30))
    top, bottom = (round(y * height / 48) for y in (10, 30))
    was, now = np.zeros((height, width), np.uint8), np.zeros((48, 64), np.uint8)
    was[top:bottom, left:right] = now[10:30, 8:30] = 1
    box = left, top, right - left, bottom - top
    pixels = was[top:bottom, left:right].astype(bool)
    for outline in (
        Outline(runs=encode(was)),
        Outline(runs=encode(now)),
        Outline(patch=Patch(left, top, pixels)),
    ):
        annotation = Annotation('x', said, (Object('a', box, 1, outline=outline),))
        fitted = fitting.fit(annotation, (64, 48), 'x')
        (item,) = fitted.objects
        assert np.array_equal(item.outline.mask((64, 48)), now)
        assert item.outline.runs_size == (64, 48) and item.area == 440
        assert fitted.counts[fitting.RESIZED] == 1 and fitted.faults == []
    for runs in (dict(size=size[::-1], counts=[1]), encode(np.zeros_like(was))):
        outline = Outline(runs=runs)
        annotation = Annotation('x', said, (Object('a', box, 1, outline=outline),))
        fitted = fitting.fit(annotation, (64, 48), 'x')
        (item,), (fault,) = fitted.objects, fitted.faults
        assert item.outline is None
        sides = box[2] * 64 / said[0], box[3] * 48 / said[1]
        assert item.bbox[2:] == pytest.approx(sides)
        assert item.area == pytest.approx(sides[0] * sides[1])
    assert fault.kind == NO_PIXEL


def test_shapes():
    """Corners of ellipses and rectangles, areas, boxes and sizes."""
    places = np.reshape(base.ellipse(30, 20, 10, 5), (-1, 2))
    assert len(places) == 32 and places[0].tolist() == [40, 20]
    assert places[8] == pytest.approx([30, 25]) and places[16, 0] == pytest.approx(20)
    turned = np.reshape(base.ellipse(30, 20, 10, 5, np.pi / 2), (-1, 2))
    assert turned[0] == pytest.approx([30, 30])
    assert turned[8] == pytest.approx([25, 20])
    corners = base.rotated_rectangle(10, 20, 4, 2, 0)
    assert corners == (8, 19, 12, 19, 12, 21, 8, 21)
    corners = base.rotated_rectangle(10, 20, 4, 2, np.pi / 2)
    assert corners == pytest.approx((11, 18, 11, 22, 9, 22, 9, 18))
    assert base.rotated_outline((1, 2, 3, 4), 0) is None
    assert base.rotated_outline((1, 2, 3, 4), 720) is None
    (polygon,) = base.rotated_outline((8, 19, 4, 2), 90).polygons
    assert polygon == pytest.approx((11, 18, 11, 22, 9, 22, 9, 18))
    assert base.polygon_area(SQUARE) == 484
    assert base.polygon_area(SQUARE[:6]) == 242
    assert base.polygon_area(SQUARE[:4]) == base.polygon_area(SQUARE[:7]) == 0
    assert base.bounding_box(['8', '31', '30', 9]) == (8, 9, 22, 22)
    assert base.stated_size('64', 48) == (64, 48)
    assert base.stated_size(64, 0) is base.stated_size(None, 48) is None
    assert base.make_outline([SQUARE[:4], 'abc']) is None
    outline = base.make_outline([SQUARE, SQUARE[:4]])
    assert outline.polygons == (tuple(SQUARE),)


def test_areas_of_objects():
    """That of the outline; without one, of the file if the box can have it, or else of
    the box."""
    outline = Outline((tuple(SQUARE[:6]),))
    make = base.make_object
    assert make('a', (8, 9, 22, 22), outline, area=7).area == 242
    assert make('a', (8, 9, 22, 22), outline).area == 242
    for area in (9.68, 300, 485):
        assert make('a', (8, 9, 22, 22), area=area).area == area
    for area in (-1, 0, 1, 9.67, 485.1, np.inf, np.nan):
        assert make('a', (8, 9, 22, 22), area=area).area == 484
    item = make(' a  b ', outline=outline)
    assert item.name == 'a b' and item.bbox == (8, 9, 22, 22) and not item.is_crowd
    runs = Outline(runs=dict(size=[48, 64], counts=[8 * 48 + 9, 22, 26, 22, 2609]))
    assert make('a', outline=runs).bbox == (8, 9, 2, 22)
    assert make('a', outline=runs, area=7).area == 44
    assert make('__ignore__', BOX).is_crowd and make('a', BOX, is_crowd=True).is_crowd
    for name, box in (('', BOX), (None, BOX), ('a', None), ('a', (1, 2, 3, np.inf))):
        with pytest.raises(ValueError, match='annotation .* has no box, or no name'):
            make(name, box)


def test_objects_in_other_forms():
    item = Object('a', (8, 9, 22, 20), 440, outline=Outline((tuple(SQUARE),)))
    scaled = item.scaled((2, 0.5))
    assert scaled.bbox == (16, 4.5, 44, 10) and scaled.area == 440
    assert scaled.outline.polygons == ((16, 4.5, 60, 4.5, 60, 15.5, 16, 15.5),)
    assert item.with_box_as_outline() is item
    (box,) = Object('a', (8, 9, 22, 20), 1).with_box_as_outline().outline.polygons
    assert box == (8, 9, 30, 9, 30, 29, 8, 29)
    entry = Object('a', (8, 9, 22, 20), 440, is_crowd=True).to_coco()
    assert entry == dict(name='a', bbox=[8, 9, 22, 20], area=440, iscrowd=1)
    mask = item.outline.mask((64, 48))
    assert mask.shape == (48, 64) and mask[9:31, 8:30].all() and mask.sum() < 530


def test_lines_of_yolo():
    """A score behind a box, keypoints, polygons, and bounds of places."""
    names = base.ClassNames({0: 'a', 3: 'b'})

    def item(*values, names=names):
        return yolo.parse_object(list(values), names)

    assert item(3, 0.5, 0.5, 0.25, 0.5).bbox == (0.375, 0.25, 0.25, 0.5)
    assert item(3, 0.5, 0.5, 0.25, 0.5, 0.9).name == 'b'
    assert item(0, 0, 0, 1, 0, 1, 1).outline.polygons == ((0, 0, 1, 0, 1, 1),)
    keypoints = base.ClassNames({}, layout=KEYPOINT_LAYOUT)
    row = item(4, 0.5, 0.5, 0.25, 0.5, 0.9, 0.9, 2, names=keypoints)
    assert row.outline is None and row.name == 'class 4'
    for tail in (0, 1, 2):  # a confidence, and the id of a track
        ends = base.ClassNames({0: 'a'}, layout=Layout(tail=tail))
        row = item(0, 0, 0, 1, 0, 1, 1, *(0.9, 1.5)[:tail], names=ends)
        assert row.outline.polygons == ((0, 0, 1, 0, 1, 1),)
    assert item(0, 2, 0.5, 0.25, 0.5).bbox[0] == 1.875
    for values in ((0, 2.1, 0.5, 0.25, 0.5), (1, 0.5, 0.5, 0.25, 0.5)):
        with pytest.raises(ValueError, match='is no part|has no name'):
            item(*values)


# ------------------------------------------------------------------- label maps
def test_ids_of_names():
    missing = labelings.with_missing_ids
    assert missing({0, 1}, 3, ()) == {0, 1, 2}
    assert missing({1, 3}, 3, (0,)) == {1, 2, 3}
    assert missing({1, 4}, 3, (0,)) == {1, 4}
    assert missing({0, 3}, 3, ()) == {0, 3}


@pytest.mark.parametrize(
    'grays, blurred',
    [
        ({0: 90, 255: 90, **dict.fromkeys(range(200, 211), 1)}, True),
        ({0: 90, 255: 90, **dict.fromkeys(range(200, 210), 1)}, False),
        ({0: 90, 255: 90, **dict.fromkeys(range(100, 120), 1)}, False),
        ({0: 90, 128: 60, **dict.fromkeys(range(200, 211), 1)}, False),
        ({0: 90, 300: 90, **dict.fromkeys(range(200, 211), 1)}, False),
        ({63: 90, 192: 90, **dict.fromkeys((0, *range(240, 256)), 1)}, True),
        ({64: 90, 191: 90, **dict.fromkeys((0, *range(240, 256)), 1)}, False),
        # without black, or white
        ({63: 90, 192: 90, **dict.fromkeys(range(240, 256), 1)}, False),
        ({63: 90, 192: 90, **dict.fromkeys((0, *range(240, 255)), 1)}, False),
    ],
)
def test_blurred_borders(grays, blurred):
    contents = labelings.MapContents({}, Counter(grays), Wanted(), [])
    assert labelings.has_blurred_borders(contents) == blurred


@pytest.mark.parametrize(
    'grays, between, blurred',
    [
        ((128,), 100, False),
        ((64, 128), 76, True),
        ((64, 128), 75, False),
        ((64, 194, 195, 196), 75, False),
        ((193, 194, 195, 196), 41, True),
        ((193, 194, 195, 196), 40, False),
    ],
)
def test_grays_between_black_and_white(grays, between, blurred):
    """Of 100 gray pixels in two maps, those that have black and white near them."""
    counts = Counter({0: 900, 255: 900, **dict.fromkeys(grays, 100 // len(grays))})
    none = np.zeros(0, int)
    maps = dict(
        a=LabelMap(none, none, grays=60, between=between - 30),
        b=LabelMap(none, none, grays=40, between=30),
    )
    contents = labelings.MapContents(maps, counts, Wanted(), [])
    assert labelings.has_blurred_borders(contents) == blurred


def test_numbers_in_maps():
    kinds = [(3, np.uint8), (3, np.uint16), (3, np.uint32), (3, np.int64)]
    for most, dtype in [*kinds, (60000, np.uint16), (70000, np.uint32)]:
        numbers = np.array([[0, most], [most, 9]], dtype)
        histogram = count_values(numbers)
        pairs = dict(zip(histogram.values.tolist(), histogram.pixels.tolist()))
        assert pairs == {0: 1, 9: 1, most: 2}
        assert histogram.grays == histogram.between == 0
    labeling = labelings.Labeling.of(['a', 'b'], {7: 0, 2**24 - 1: 1})
    assert labeling.table[[7, 2**24 - 1, 8]].tolist() == [0, 1, 255]
    assert labeling.table.dtype == np.uint8


def test_maps_are_drawn_small_above_large(tmp_path):
    """Crowds have no label, and other classes are ground."""
    square = tuple(SQUARE)
    small = (10, 10, 20, 10, 20, 20, 10, 20)
    items = [
        Object('b', (10, 10, 10, 10), 100, outline=Outline((small,))),
        Object('a', (8, 9, 22, 22), 484, outline=Outline((square,))),
        Object(
            'a', (40, 9, 9, 9), 81, True, Outline(((40, 9, 49, 9, 49, 18, 40, 18),))
        ),
        Object('c', (50, 30, 9, 9), 81, outline=Outline(((50, 30, 59, 30, 59, 39),))),
        Object('a', (0, 0, 5, 5), 25),
    ]
    wanted = Wanted(['ground', 'a', 'b'], is_drawn=True)
    seen = Photo(tmp_path, (64, 48), objects=tuple(items), is_drawn=True)
    ids = MapReader(wanted, are_colors=False, rotates=False).read(seen)
    assert ids.shape == (48, 64)
    assert [ids[x] for x in ((12, 12), (28, 28), (12, 44), (33, 56), (2, 2))] == [
        *(2, 1, 255, 0, 0)
    ]


def test_shares_of_classes(tmp_path):
    tree = {'{split}/{i}.png': photo, '{split}annot/{i}.png': label_map(0, 1, 11)}
    data = known.read(grow(tmp_path, tree), 'seg', ignore=[11])
    rows = {row[0]: row[1:] for row in data.overview()}
    # 22 x 22 of 64 x 48 pixels, and four rows without a label
    assert rows['class 1 (1)'] == ['15.8%'] * 3
    assert rows['class 0 (0)'] == ['75.9%'] * 3
    assert rows['no label (11)'] == ['8.3%'] * 3


@pytest.mark.parametrize(
    'line, color, name',
    [
        ('road 128 64 7', (128, 64, 7), 'road'),
        ('128,64,7,road', (128, 64, 7), 'road'),
        ('road=128,64,7', (128, 64, 7), 'road'),
        ('4 128 64 7 # road', (128, 64, 7), 'road'),
        ('4, 128, 64, 7, "a road"', (128, 64, 7), 'a road'),
    ],
)
def test_lines_of_colors(line, color, name):
    code = class_tables.color_code(*color)
    assert class_tables.parse_colors([line, 'name,r,g,b']) == {code: name}
    assert class_tables.color_words(code) == '128,64,7'


def test_tables_of_colors(tmp_path):
    """A table has two colors or more, a name for each, and a name of its own."""
    lines = ('a 9 0 200\nb 128 64 0\n', 'a 9 0 200\n', '9 0 200\n1 2 3\n')
    paths = [tmp_path / name for name in ('my_colors.txt', 'class.txt', 'label.csv')]
    for path, text in zip(paths, lines):
        path.write_text(text)
    first = {class_tables.color_code(9, 0, 200): 'a', 0x804000: 'b'}
    assert class_tables.read_colors(None, paths[::-1]) == first
    assert class_tables.read_colors(None, paths[1:]) == {}
    paths[0].rename(tmp_path / 'other.txt')
    assert class_tables.read_colors(None, [tmp_path / 'other.txt']) == {}


def test_files_of_label_maps():
    stems = 'mask_1 1_mask gt-7 7.labels a_gtFine_labelIds 1_labelTrainIds x_seg'
    assert all(map(masks.is_map_name, stems.split()))
    assert not any(
        map(masks.is_map_name, ['mask', '1_2', 'masked_1', '1_machine', 'color_1'])
    )
    assert masks.has_maps('images/masks') and not masks.has_maps('masks/images')
    assert not masks.has_maps('a/b')
