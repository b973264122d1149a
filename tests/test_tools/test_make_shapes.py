import hashlib
import json
from ast import literal_eval
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.evaluator import Evaluator
from mmengine.registry import DATASETS, DefaultScope
from small_configs import FOLDERS, options_of

from mmlinattn.commands import make_shapes as tool
from mmlinattn.utils import load_config

pytestmark = pytest.mark.openmmlab

NUM_TRAIN, NUM_VAL = 6, 3
METRICS = ('coco/bbox_mAP', 'coco/segm_mAP', 'cityscapes/mAP', 'mIoU', 'accuracy/top1')


def run(layout, out, *options):
    counts = ['--num-train', str(NUM_TRAIN), '--num-val', str(NUM_VAL)]
    tool.main(['--layout', layout, '--out', str(out), *counts, *options])
    return out


@pytest.fixture(scope='module')
def coco(tmp_path_factory):
    return contents(run('coco', tmp_path_factory.mktemp('shapes') / 'coco'))


def contents(root):
    files = sorted(path for path in root.rglob('*') if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


# ---------------------------------------------------------------------- layouts
def predict_instances(sample):
    truth = sample.gt_instances
    sample.pred_instances = type(truth)(
        bboxes=truth.bboxes.tensor,
        labels=truth.labels,
        scores=torch.ones(len(truth)),
        masks=truth.masks.to_tensor(torch.bool, 'cpu'),
    )


def predict_segmentation(sample):
    labels = sample.gt_sem_seg.data.clone()
    labels[labels == 255] = 0
    sample.pred_sem_seg = type(sample.gt_sem_seg)(data=labels)


def predict_class(sample):
    sample.set_pred_score(torch.eye(1000)[sample.gt_label.item()])


@pytest.mark.parametrize(
    'package, config, layout, predict, expected',
    [
        ('mmdet', 'coco_instance', 'coco', predict_instances, 1),
        ('mmseg', 'ade20k', 'ade20k', predict_segmentation, 100),
        ('mmseg', 'cityscapes', 'cityscapes', predict_segmentation, 100),
        ('mmdet', 'cityscapes_instance', 'cityscapes', predict_instances, 1),
        ('mmpretrain', 'imagenet_bs64_swin_224', 'imagenet', predict_class, 100),
    ],
)
def test_metrics_of_the_truth(
    tmp_path, monkeypatch, package, config, layout, predict, expected
):
    """The library's metrics of its own base config know the classes and files."""
    monkeypatch.chdir(tmp_path)
    # resizing to the size of the images changes nothing
    run(layout, Path('data', FOLDERS[layout]), '--size', '64', '64')
    path = Path(find_spec(package).origin).parent / '.mim/configs/_base_/datasets'
    path = str(path / f'{config}.py')
    options = options_of(load_config(path)).items()
    cfg = load_config(path, {key: literal_eval(x) for key, x in options})
    with DefaultScope.overwrite_default_scope(package):
        train = DATASETS.build(cfg.train_dataloader.dataset)
        val = DATASETS.build(cfg.val_dataloader.dataset)
        evaluator = Evaluator(cfg.val_evaluator)
        evaluator.dataset_meta = val.metainfo
        for item in val:
            predict(item['data_samples'])
            evaluator.process([item['data_samples']], item)
        results = evaluator.evaluate(len(val))
    assert len(train) in (NUM_TRAIN, 8 * NUM_TRAIN) and len(val) == NUM_VAL
    scores = [results[name] for name in METRICS if name in results]
    assert scores == pytest.approx([expected] * len(scores), abs=1e-3) and scores


def test_shapes_are_coco_with_classes_of_their_own(coco, tmp_path):
    shapes = contents(run('shapes', tmp_path))
    assert coco.keys() == shapes.keys()
    assert all(coco[name] == shapes[name] for name in coco if name.endswith('.jpg'))
    content = json.loads(shapes['annotations/instances_val2017.json'])
    names = [category['name'] for category in content['categories']]
    assert names == ['circle', 'square', 'triangle']


# ----------------------------------------------------------------------- scenes
@pytest.mark.parametrize(
    'layout, regions, means',
    [
        ('coco', '7c2c087221430d41', [145.01, 134.01, 139.50]),
        ('cityscapes', 'c7befa7c8a58eb24', [146.72, 143.22, 146.54]),
        ('imagenet', '6d37adb0cd7c200c', [138.38, 144.46, 150.65]),
    ],
)
def test_scenes_stay_as_they_are(layout, regions, means):
    """Measurements on shapes can be repeated."""
    argv = ['--layout', layout, '--out', 'x', '--seed', '5', '--num-val', '3']
    args = tool.parse_args(argv)
    scenes = list(tool.draw_split('val', args))
    index = np.stack([scene.index for scene in scenes])
    assert hashlib.sha256(index.tobytes()).hexdigest()[:16] == regions
    assert [scene.image.mean() for scene in scenes] == pytest.approx(means, abs=0.2)


# ------------------------------------------------------- existing output folders
def test_only_shapes_are_replaced(coco, tmp_path, error_of):
    root = run('ade20k', tmp_path / 'shapes')
    (root / 'mine.jpg').write_text('mine')
    files = contents(run('coco', root))
    assert files.pop('mine.jpg') == b'mine'
    assert files == coco
    (tmp_path / 'mine.jpg').write_text('mine')
    assert 'was not written by this tool' in error_of(run, 'coco', tmp_path)
