import hashlib
import importlib
import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine import Config, DefaultScope
from mmengine.evaluator import Evaluator
from mmengine.registry import DATASETS

# The longer sides of the default sizes: resizing to them changes nothing.
SCALES = dict(coco=192, ade20k=192, cityscapes=256, imagenet=192)
NUM_TRAIN, NUM_VAL = 6, 3


@pytest.fixture(scope='module')
def tool(load_tool):
    return load_tool('dataset_converters/make_shapes.py')


@pytest.fixture(scope='module')
def run(tool):
    def run(layout, out, *options):
        counts = ['--num-train', str(NUM_TRAIN), '--num-val', str(NUM_VAL)]
        tool.main(['--layout', layout, '--out', str(out), *counts, *options])
        return out

    return run


@pytest.fixture(scope='module')
def roots(tmp_path_factory, run):
    folder = tmp_path_factory.mktemp('shapes')
    return {layout: run(layout, folder / layout) for layout in SCALES}


def contents(root):
    files = sorted(path for path in root.rglob('*') if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


# ---------------------------------------------------------------------- layouts
@contextmanager
def base_config(package, name, root, scale):
    """A library's own base config with nothing but its data root and scale replaced."""
    module = importlib.import_module(package)
    utils = importlib.import_module(f'{package}.utils')
    utils.register_all_modules(init_default_scope=False)
    path = Path(module.__file__).parent / f'.mim/configs/_base_/datasets/{name}.py'
    config = Config.fromfile(path)
    data_root = config.val_dataloader.dataset.data_root

    def replace(value, key=None):
        if key == 'scale' and package != 'mmpretrain':
            return scale, scale
        if isinstance(value, dict):
            return {k: replace(v, k) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(map(replace, value))
        if isinstance(value, str) and value.startswith(data_root):
            return value.replace(data_root, f'{root}/', 1)
        return value

    with DefaultScope.overwrite_default_scope(package):
        yield Config(replace(config.to_dict()))


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
    roots, tmp_path, monkeypatch, package, config, layout, predict, expected
):
    """The library's metrics of its own base config know the classes and files."""
    monkeypatch.chdir(tmp_path)  # CityScapesMetric writes to ./work_dirs
    names = [
        'coco/bbox_mAP',
        'coco/segm_mAP',
        'cityscapes/mAP',
        'mIoU',
        'accuracy/top1',
    ]
    with base_config(package, config, roots[layout], SCALES[layout]) as cfg:
        train = DATASETS.build(cfg.train_dataloader.dataset)
        val = DATASETS.build(cfg.val_dataloader.dataset)
        evaluator = Evaluator(cfg.val_evaluator)
        evaluator.dataset_meta = val.metainfo
        for item in val:
            predict(item['data_samples'])
            evaluator.process([item['data_samples']], item)
        results = evaluator.evaluate(len(val))
    assert len(train) in (NUM_TRAIN, 8 * NUM_TRAIN) and len(val) == NUM_VAL
    found = [results[name] for name in names if name in results]
    assert found == pytest.approx([expected] * len(found), abs=1e-3) and found


def test_shapes_are_coco_with_classes_of_their_own(roots, run, tmp_path):
    coco, shapes = contents(roots['coco']), contents(run('shapes', tmp_path))
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
def test_scenes_stay_as_they_are(tool, layout, regions, means):
    """Measurements on shapes can be repeated."""
    argv = ['--layout', layout, '--out', 'x', '--seed', '5', '--num-val', '3']
    args = tool.parse_args(argv)
    found = list(tool.draw_split('val', args))
    index = np.stack([scene.index for scene in found])
    assert hashlib.sha256(index.tobytes()).hexdigest()[:16] == regions
    assert [scene.image.mean() for scene in found] == pytest.approx(means, abs=0.2)


# ------------------------------------------------------- existing output folders
def test_only_shapes_are_replaced(run, roots, tmp_path, capsys):
    root = run('ade20k', tmp_path / 'shapes')
    (root / 'mine.jpg').write_text('mine')
    found = contents(run('coco', root))
    assert found.pop('mine.jpg') == b'mine'
    assert found == contents(roots['coco'])
    (tmp_path / 'mine.jpg').write_text('mine')
    with pytest.raises(SystemExit):
        run('coco', tmp_path)
    assert 'was not written by this tool' in capsys.readouterr().err
