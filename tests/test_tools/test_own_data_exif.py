"""Labels of photos that EXIF data rotate: they lie on the pixels that OpenCV, and so a
training, reads."""

import cv2
import numpy as np
import pytest
from loading import load_module
from own_folders import BOX, HEIGHT, NAMES, SIZE, WIDTH, coco, grow, name_of, photo
from PIL import Image

from mmlinattn.own_data.headers import read_header

known = load_module('tests/test_tools/test_own_data.py')
REMEDY = 'in a copy of the photos, `exiftool -r -Orientation= FOLDER` removes the rot'
# where OpenCV shows a place of the camera's pixels, by orientation
SEEN = {
    1: lambda x, y: (x, y),
    2: lambda x, y: (WIDTH - x, y),
    3: lambda x, y: (WIDTH - x, HEIGHT - y),
    4: lambda x, y: (x, HEIGHT - y),
    5: lambda x, y: (y, x),
    6: lambda x, y: (HEIGHT - y, x),
    7: lambda x, y: (HEIGHT - y, WIDTH - x),
    8: lambda x, y: (y, WIDTH - x),
}


def box_in(orientation):
    """The box of the square, and the size of the photo, as they are seen."""
    x, y, width, height = BOX
    ends = [SEEN[orientation](*end) for end in ((x, y), (x + width, y + height))]
    left, top = np.min(ends, 0).tolist()
    size = SIZE if orientation < 5 else SIZE[::-1]
    return [left, top, 22, 22], size


def mask_of(box, size):
    x, y, width, height = map(round, box)
    mask = np.zeros(size[::-1], np.uint8)
    mask[y : y + height, x : x + width] = 255
    return mask


def corners(box):
    x, y, width, height = box
    right, bottom = x + width, y + height
    return [x, y, right, y, right, bottom, x, bottom]


def coco_file(box, size, **values):
    return {
        'a.json': coco(image=dict(zip(('width', 'height'), size)), bbox=box, **values)
    }


def yolo_files(box, size):
    x, y, width, height = box
    parts = x + width / 2, y + height / 2, width, height
    places = ' '.join(str(part / size[k % 2]) for k, part in enumerate(parts))
    return {'{i}.txt': lambda i: f'{i % 2} {places}\n', 'classes.txt': 'red\nblue'}


def voc_files(box, size):
    x, y, width, height = box
    return {
        '{i}.xml': lambda i: (
            f'<annotation><filename>{i}.jpg</filename><size><width>{size[0]}</width>'
            f'<height>{size[1]}</height></size><object><name>{name_of(i)}</name><bndbox>'
            f'<xmin>{x}</xmin><ymin>{y}</ymin><xmax>{x + width}</xmax>'
            f'<ymax>{y + height}</ymax></bndbox></object></annotation>'
        )
    }


def class_masks(box, size):
    return {
        f'masks/{name}/{{i}}.png': lambda i, name=name: (
            mask_of(box, size) * (name == name_of(i))
        )
        for name in NAMES
    }


# labels, whether they state the size of the photo, and the task that learns them
LABELS = {
    'coco': (coco_file, True, 'det'),
    'yolo': (yolo_files, False, 'det'),
    'voc': (voc_files, True, 'det'),
    'outlines': (
        lambda box, size: coco_file(box, size, segmentation=[corners(box)]),
        True,
        'seg',
    ),
    'masks of classes': (class_masks, True, 'seg'),
}
every_label = pytest.mark.parametrize('kind', LABELS)
every_orientation = pytest.mark.parametrize('orientation', SEEN)


def check_places(data):
    """Labels are where OpenCV sees the square."""
    photos = known.photos_of(data)
    assert len(photos) == 10
    for x in photos:
        square = known.seen_square(x.path, name_of(known.number_of(x)))
        if data.label_maps:
            labels = data.label_maps.labels(x) > 0
        else:
            (item,) = x.objects
            labels = mask_of(item.bbox, x.size) > 0
        assert labels.shape == square.shape and (labels != square).mean() < 0.05


def remove_rotations(root):
    """What exiftool does to photos, as far as their pixels matter."""
    for path in root.rglob('*.jpg'):
        with Image.open(path) as image:
            image.save(path, quality=95, exif=b'')


@every_orientation
@every_label
def test_labels_of_photos_as_they_are_seen(tmp_path, kind, orientation):
    make, _, task = LABELS[kind]
    tree = {'{i}.jpg': lambda i: known.lying(i, orientation)}
    root = grow(tmp_path, {**tree, **make(*box_in(orientation))})
    check_places(known.read(root, task))


@every_orientation
@every_label
def test_labels_of_the_pixels_of_cameras(tmp_path, kind, orientation):
    """They are refused where sizes differ, and doubted elsewhere; the printed command
    makes them fit."""
    make, has_size, task = LABELS[kind]
    tree = {'{i}.jpg': lambda i: known.lying(i, orientation)}
    root = grow(tmp_path, {**tree, **make(BOX, SIZE)})
    if has_size and orientation > 4:
        with pytest.raises(ValueError, match=f'and its EXIF data rotate.*{REMEDY}'):
            known.read(root, task)
    else:
        notes = '\n'.join(map(str, known.read(root, task).notes))
        doubt = f'if labels do not fit in --show, {REMEDY}'
        assert (doubt in notes) == (orientation > 1)
    remove_rotations(root)
    data = known.read(root, task)
    check_places(data)
    assert 'EXIF' not in '\n'.join(map(str, data.notes))


def test_orientations_that_opencv_does_not_read(tmp_path):
    """Pillow takes that of XMP where EXIF data have none."""
    data = Image.Exif()
    data[0x010F] = 'a camera'
    path = tmp_path / '0.jpg'
    Image.fromarray(photo(0)).save(path, exif=data)
    xmp = b'http://ns.adobe.com/xap/1.0/\0<x tiff:Orientation="6"/>'
    content = path.read_bytes()
    segment = b'\xff\xe1' + (len(xmp) + 2).to_bytes(2, 'big') + xmp
    path.write_bytes(content[:2] + segment + content[2:])
    header = read_header(path)
    assert header.size == cv2.imread(str(path)).shape[1::-1] == SIZE
    assert header.orientation == 1


@pytest.mark.openmmlab
@every_orientation
def test_trainings_read_photos_as_opencv_does(tmp_path, orientation):
    transforms = pytest.importorskip('mmcv.transforms')
    path = tmp_path / '0.jpg'
    path.write_bytes(known.lying(0, orientation))
    seen = transforms.LoadImageFromFile()(dict(img_path=str(path)))['img']
    assert np.array_equal(seen, cv2.imread(str(path)))
    assert seen.shape[1::-1] == box_in(orientation)[1]
