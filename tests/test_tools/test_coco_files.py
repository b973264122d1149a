"""Detections in COCO's format, read by pycocotools and as a person's own data."""

import json
from pathlib import Path

import analysis_models as models
import cv2
import numpy as np
import pytest
from constant_models import FOUND, write_file
from PIL import Image
from pycocotools import mask as coco_masks
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from mmlinattn.commands import compare_predictions, predict
from mmlinattn.commands.coco_files import Detections, to_coco
from mmlinattn.deployment.predictor import as_json
from mmlinattn.own_data import Options, OwnData

CLASSES = ['cat', 'dog', 'owl']


def write_photo(path, height=40, width=60, orientation=1):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(0).integers(0, 255, (height, width, 3))
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(pixels.astype(np.uint8)).save(path, exif=exif)
    return path


def blobs(height, width, num, seed=0):
    """Masks (N, H, W) of several parts, some with holes, some at the border."""
    rng = np.random.default_rng(seed)
    noise = rng.random((num, height, width))
    smooth = [cv2.GaussianBlur(x, (0, 0), rng.uniform(0.5, 4)) for x in noise]
    return np.stack([x > np.quantile(x, rng.uniform(0.3, 0.95)) for x in smooth])


def detections(path, num=40, name='photo.png'):
    height, width = 40, 60
    masks = blobs(height, width, num)
    rng = np.random.default_rng(1)
    boxes = [cv2.boundingRect(mask.astype(np.uint8)) for mask in masks]
    predicted = dict(
        boxes=np.float32([[x, y, x + w, y + h] for x, y, w, h in boxes]),
        scores=rng.random(num).astype(np.float32),
        labels=rng.integers(0, 3, num),
        masks=masks,
    )
    return predicted, Detections(name, path, as_json(predicted, CLASSES)['objects'])


def opened(tmp_path, dataset, results):
    """Both files in pycocotools."""
    for name, content in (('d.json', dataset), ('r.json', results)):
        (tmp_path / name).write_text(json.dumps(content))
    truth = COCO(str(tmp_path / 'd.json'))
    return truth, truth.loadRes(str(tmp_path / 'r.json'))


def test_masks_are_the_same_pixels_in_both_files(tmp_path):
    path = write_photo(tmp_path / 'photo.png')
    predicted, image = detections(path)
    truth, results = opened(tmp_path, *to_coco([image], CLASSES))
    for i, mask in enumerate(predicted['masks'], 1):
        for coco in (truth, results):
            entry = coco.anns[i]
            assert (coco.annToMask(entry) == mask).all()
            assert entry['category_id'] == predicted['labels'][i - 1] + 1
            assert entry['score'] == pytest.approx(predicted['scores'][i - 1])
            x, y, width, height = entry['bbox']
            box = x, y, x + width, y + height
            assert np.allclose(box, predicted['boxes'][i - 1], atol=0.002)
        assert truth.anns[i]['area'] == mask.sum()
        assert type(truth.anns[i]['segmentation']) is list
    assert truth.loadCats(truth.getCatIds())[2] == dict(id=3, name='owl')


@pytest.mark.parametrize('kind', ['bbox', 'segm'])
def test_the_results_are_right_beside_the_data_set(tmp_path, kind):
    """COCO's score of predictions beside themselves is 1."""
    _, image = detections(write_photo(tmp_path / 'photo.png'))
    evaluator = COCOeval(*opened(tmp_path, *to_coco([image], CLASSES)), kind)
    evaluator.evaluate()
    evaluator.accumulate()
    evaluator.summarize()
    assert evaluator.stats[0] == pytest.approx(1)


def test_rotated_boxes(tmp_path):
    path = write_photo(tmp_path / 'photo.png')
    box = [30.0, 20.0, 16.0, 8.0, np.pi / 6]
    image = Detections('photo.png', path, [dict(name='dog', score=0.5, box=box)])
    dataset, results = to_coco([image], CLASSES)
    (corners,) = dataset['annotations'][0]['segmentation']
    rectangle = cv2.minAreaRect(np.float32(corners).reshape(4, 2))
    assert np.allclose(rectangle[0], box[:2], atol=0.01)
    assert np.allclose(sorted(rectangle[1]), [8, 16], atol=0.01)
    expected = cv2.boxPoints(((30, 20), (16, 8), 30))
    assert np.allclose(sorted(corners), sorted(expected.ravel().tolist()), atol=0.01)
    x, y, width, height = results[0]['bbox']
    assert np.allclose([x, y], expected.min(0), atol=0.01)
    assert np.allclose([x + width, y + height], expected.max(0), atol=0.01)
    opened(tmp_path, dataset, results)


def test_sizes_are_those_after_rotation(tmp_path):
    path = write_photo(tmp_path / 'photo.jpg', orientation=6)
    (entry,) = to_coco([Detections('photo.jpg', path, [])], CLASSES)[0]['images']
    assert (entry['width'], entry['height']) == (40, 60)


def test_they_are_a_persons_own_data(tmp_path):
    """As new-config reads them: names, boxes and pixels."""
    path = write_photo(tmp_path / 'd/photo.png')
    predicted, image = detections(path)
    others = [
        Detections(f'{i}.png', write_photo(tmp_path / f'd/{i}.png'), image.objects)
        for i in range(5)
    ]
    dataset, _ = to_coco([image, *others], CLASSES)
    (tmp_path / 'd/coco.json').write_text(json.dumps(dataset))
    data = OwnData.from_folder(Options(data=tmp_path / 'd', task='det'))
    photos = {photo.path: photo for split in data.splits.values() for photo in split}
    assert len(photos) == 6 and sorted(data.classes) == CLASSES
    for photo in photos.values():
        assert len(photo.objects) == len(predicted['masks'])
        objects = zip(photo.objects, predicted['masks'], predicted['labels'])
        for item, mask, label in objects:
            assert item.name == CLASSES[label]
            assert (item.outline.mask((60, 40)) == mask).all()


@pytest.mark.openmmlab
def test_compare(tmp_path, capsys, error_of):
    """For each model a pair of files, also of photos that were predicted before."""
    photos = [write_photo(tmp_path / f'photos/{i}.png', 40 + i, 60) for i in range(3)]
    configs = [models.write_config(tmp_path, x, 'retinanet') for x in ('one', 'two')]
    out = tmp_path / 'out'
    rest = '--image', str(tmp_path / 'photos'), '--score', '0', '--out', str(out)
    compare_predictions.main([*configs, *rest])
    compare_predictions.main([*configs, *rest, '--format', 'coco'])
    assert (
        f'{out / "coco_2.json"} and coco_results_2.json: 3' in capsys.readouterr().out
    )
    for i in (1, 2):
        truth = COCO(str(out / f'coco_{i}.json'))
        results = truth.loadRes(str(out / f'coco_results_{i}.json'))
        sizes = [(im['file_name'], im['height']) for im in truth.imgs.values()]
        assert sizes == [(path.name, 40 + j) for j, path in enumerate(photos)]
        record = json.loads((out / '1_predictions.json').read_text())
        objects = record['models'][i - 1]['objects']
        entries = results.imgToAnns[2]
        assert [x['score'] for x in objects] == [x['score'] for x in entries]
        assert len(entries) == len(objects) > 0
    segmentor = models.write_config(tmp_path, 'segmentor', 'segmentor')
    argv = segmentor, *rest[:-1], str(tmp_path / 'other'), '--format', 'coco'
    assert 'a model of mmseg: leave --format out' in error_of(
        compare_predictions.main, argv
    )
    assert not (tmp_path / 'other').exists()


@pytest.mark.openmmlab
@pytest.mark.parametrize('name', ['coco.json', 'coco_results.json'])
def test_files_of_others_are_kept(tmp_path, name, error_of):
    config = models.write_config(tmp_path, 'one', 'retinanet')
    photo = write_photo(tmp_path / 'photo.png')
    path = Path(tmp_path, 'out', name)
    path.parent.mkdir()
    path.write_text('[]')
    argv = config, '--image', str(photo), '--out', str(path.parent), '--format', 'coco'
    assert f'{path} exists: give --overwrite' in error_of(
        compare_predictions.main, argv
    )
    assert path.read_text() == '[]' and len(list(path.parent.iterdir())) == 1


def test_predict_with_an_exported_file(tmp_path, error_of):
    folder = tmp_path / 'photos'
    for name in ('a.png', 'more/b.png'):
        write_photo(folder / name)
    file = write_file(tmp_path / 'm.onnx', **FOUND)
    out = tmp_path / 'out'
    words = str(folder), '--out', str(out), '--format', 'coco'
    predict.main([file, *words])
    truth = COCO(str(out / 'coco.json'))
    results = truth.loadRes(str(out / 'coco_results.json'))
    assert [x['file_name'] for x in truth.imgs.values()] == ['a.png', 'more/b.png']
    objects = json.loads((out / 'predictions.json').read_text())['a.png']['objects']
    assert len(objects) == 2 == len(results.imgToAnns[1])
    for entry, annotation in zip(objects, results.imgToAnns[1]):
        packed = coco_masks.frPyObjects(entry['mask'], *entry['mask']['size'])
        assert (coco_masks.decode(packed) == results.annToMask(annotation)).all()
    scores = write_file(tmp_path / 'c.onnx', scores=np.float32([0.1, 0.7, 0.2]))
    assert 'needs a detector, got' in error_of(predict.main, [scores, *words])
