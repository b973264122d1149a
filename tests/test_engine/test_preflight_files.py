"""Files that data sets and evaluators name: photos that are missing, empty or others,
and annotations of other photos."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from mmcv.transforms import LoadAnnotations, LoadImageFromFile
from mmengine.config import Config
from PIL import Image

from mmlinattn.engine.preflight import read_photos
from mmlinattn.engine.preflight.evaluators import check_files
from mmlinattn.engine.preflight.files import check_photos


class Photos(list):
    """A data set of a library, of what it knows of each photo."""

    def __init__(self, infos, *steps, **attributes):
        super().__init__(infos)
        self.pipeline = SimpleNamespace(transforms=list(steps))
        vars(self).update(attributes)

    get_data_info = list.__getitem__


class Own(Photos):
    """One of the user's own, which may make photos."""


Photos.__module__ = 'mmdet.datasets.photos'


@pytest.fixture
def folder(tmp_path):
    for i in range(3):
        Image.fromarray(np.zeros((24, 32, 3), np.uint8)).save(tmp_path / f'{i}.png')
    return tmp_path


def infos(folder, **more):
    return [
        dict(img_path=str(folder / f'{i}.png'), width=32, height=24, **more)
        for i in range(3)
    ]


LOAD, MAPS = LoadImageFromFile(), LoadAnnotations(with_seg=True)
BOXES = LoadAnnotations(with_seg=False)
REMOTE = LoadImageFromFile(backend_args=dict(backend='petrel'))
LENIENT = LoadImageFromFile(ignore_empty=True)


@pytest.mark.parametrize(
    'fault, kind, steps, expected',
    [
        (None, Photos, [LOAD], ''),
        ('removed', Photos, [LOAD], 'refused'),
        ('empty', Photos, [LOAD], 'refused'),
        ('removed', Photos, [LENIENT], 'doubted'),
        ('removed', Own, [LOAD], 'doubted'),
        ('removed', Photos, [REMOTE], ''),
        ('removed', Photos, [], ''),  # photos that are read in another way
        ('map', Photos, [LOAD, MAPS], 'refused'),
        ('map', Photos, [LOAD, BOXES], ''),
        ('map', Photos, [LOAD], ''),  # a test without labels
        ('replaced', Photos, [LOAD], 'doubted'),
        ('turned', Photos, [LOAD], ''),  # as its EXIF data say
    ],
)
def test_photos(folder, fault, kind, steps, expected):
    photo = folder / '1.png'
    if fault == 'removed':
        photo.unlink()
    if fault == 'empty':
        photo.write_bytes(b'')
    size = dict(replaced=(50, 300), turned=(32, 24)).get(fault)
    if size:
        Image.fromarray(np.zeros((*size, 3), np.uint8)).save(photo)
    maps = dict(seg_map_path=str(folder / 'map.png')) if fault == 'map' else {}
    dataset, doubts = kind(infos(folder, **maps), *steps), []
    refusal = pytest.raises(ValueError, match='train_dataloader: .* missing or empty')
    with refusal if expected == 'refused' else nullcontext():
        check_photos('train_dataloader', dataset, doubts.append)
    assert bool(doubts) == (expected == 'doubted')
    if fault == 'replaced':
        assert '1.png, 300 x 50 pixels and not 32 x 24' in doubts[0]


def test_every_photo_is_read(folder):
    said, dataset = [], Photos(infos(folder), LOAD)
    read_photos('train', dataset, said.append)
    assert 'train_dataloader: read 3 photos in ' in said[0]
    (folder / '2.png').write_bytes((folder / '2.png').read_bytes()[:40])
    with pytest.raises(ValueError, match='1 of 3 photos can not be read, .*2.png'):
        read_photos('train', dataset, said.append)


def coco_file(folder, name, photos):
    images = [dict(id=number, file_name=photo) for number, photo in photos.items()]
    (folder / name).write_text(json.dumps(dict(images=images)))
    return str(folder / name)


OWN = {1: 'a.jpg', 2: 'b.jpg'}


@pytest.mark.parametrize(
    'photos, expected',
    [
        (OWN, ''),
        ({1: 'images/a.jpg', 2: 'images\\b.jpg'}, ''),
        ({1: None, 2: None}, ''),  # only numbers
        ({1: 'a.jpg'}, '1 of its 2 photos .*b.jpg'),
        ({1: 'c.jpg', 2: 'd.jpg'}, '2 of its 2 photos'),
        ({3: 'a.jpg', 4: 'b.jpg'}, '2 of its 2 photos'),
        ({**OWN, 3: 'c.jpg'}, 'doubted'),
    ],
)
@pytest.mark.parametrize('several', [False, True])
def test_file_of_an_evaluator(tmp_path, photos, expected, several):
    own = coco_file(tmp_path, 'val.json', OWN)
    other = coco_file(tmp_path, 'other.json', photos)
    known = [dict(img_id=n, img_path=f'x/{name}') for n, name in OWN.items()]
    dataset, doubts = Photos(known, ann_file=own), []
    metric = dict(type='CocoMetric', ann_file=other)
    metric = [dict(type='Mine'), metric] if several else metric
    cfg = Config(dict(test_evaluator=metric))
    key = f'test_evaluator.{"1." if several else ""}ann_file='
    refuses = expected not in ('', 'doubted')
    refusal = pytest.raises(ValueError, match=f'^{key}.*other.json.*{expected}')
    with refusal if refuses else nullcontext():
        check_files(cfg, 'test', [dataset], doubts.append)
    assert [x.startswith(key) for x in doubts] == [True] * (expected == 'doubted')


def test_evaluators_that_are_not_compared(tmp_path):
    own = coco_file(tmp_path, 'val.json', OWN)
    link = tmp_path / 'link.json'
    link.symlink_to(own)
    other = coco_file(tmp_path, 'other.json', {9: 'z.jpg'})
    known = [dict(img_id=n, img_path=name) for n, name in OWN.items()]
    dataset = Photos(known, ann_file=own)
    for metric, parts in [
        (dict(ann_file=str(link)), [dataset]),
        (dict(ann_file=None), [dataset]),
        (dict(ann_file='s3://there.json'), [dataset]),
        (dict(), [dataset]),
        (None, [dataset]),
        (dict(ann_file=other), [dataset, dataset]),  # one metric of several sets
        (dict(ann_file=other), [Photos([dict(x=1)], ann_file=own)]),
    ]:
        check_files(Config(dict(val_evaluator=metric)), 'val', parts, pytest.fail)
