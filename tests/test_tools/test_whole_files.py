"""Whole models in ONNX files predict what their libraries predict."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from mmlinattn_tools.looking import Subject

pytest.importorskip('onnxruntime')

from mmlinattn.deployment import Predictor

pytestmark = pytest.mark.modern
ROOT = Path(__file__).parents[2]


def load_module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


miniatures = load_module(Path(__file__).with_name('analysis_models.py'))
export = load_module(ROOT / 'tools/deployment/export.py')
test_file = load_module(ROOT / 'tools/deployment/test_file.py')
LIBRARIES = dict(segmentor='mmseg', slide='mmseg', classifier='mmpretrain')
RATIO = "dict(type='Resize', scale=(150, 90), keep_ratio=True)"
EDGE = (
    "dict(type='ResizeEdge', scale=72, edge='short', backend='pillow', "
    "interpolation='bicubic'), dict(type='CenterCrop', crop_size=64)"
)
# Windows of 64 x 48 that overlap, and one that is larger than the image's height.
SLIDE = "model['test_cfg'] = dict(mode='slide', crop_size=(64, 48), stride=(40, 32))\n"
SIZES = ((60, 90), (130, 97), (64, 200))


@pytest.fixture
def paths(tmp_path, monkeypatch):
    """Paths of the config, the weights and images of a small model."""
    monkeypatch.chdir(tmp_path)

    def make(kind):
        pytest.importorskip(LIBRARIES.get(kind, 'mmdet'))
        name = 'segmentor' if kind == 'slide' else kind
        config = miniatures.write_config('', kind, name)
        steps = EDGE if kind == 'classifier' else RATIO
        with open(config, 'a', encoding='utf-8') as file:
            file.write(SLIDE if kind == 'slide' else '')
            file.write(f"\ntest_dataloader['dataset']['pipeline'][1:2] = [{steps}]\n")
        torch.manual_seed(0)
        classes = dict(dataset_meta=dict(classes=('one', 'two', 'three')))
        weights = miniatures.save_weights(config, 'weights.pth', meta=classes)
        if name == 'segmentor':  # no class everywhere
            saved = torch.load(weights)
            biases = [x for x in saved['state_dict'] if x.startswith('decode_head')]
            for x in biases:
                saved['state_dict'][x] *= not x.endswith('bias')
            torch.save(saved, weights)
        images = [
            miniatures.write_image(f'{height}.png', height, width)
            for height, width in SIZES
        ]
        return config, weights, images

    return make


@pytest.mark.parametrize(
    'kind', ['retinanet', 'atss', 'faster', 'mask', 'segmentor', 'slide', 'classifier']
)
def test_predictions_are_those_of_the_library(kind, paths, capsys):
    config, weights, images = paths(kind)
    export.main([config, weights, '--whole', '--shape', '75', '101'])
    assert f'{kind}.onnx: ' in capsys.readouterr().out
    model = Subject(config, weights, '', whole=True)
    predictor = Predictor(f'{kind}.onnx')
    assert predictor.classes == ['one', 'two', 'three']
    seen = 0
    for path in images:
        with torch.no_grad():
            (sample,) = model.model.test_step(model.batch(Path(path)))
        expected, found = test_file.read(sample), predictor(path)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert found[name].shape == value.shape
            assert found[name].dtype == value.dtype or name == 'label_map'
        row = test_file.compare(found, expected)
        limits = dict(boxes_without_counterpart=0, box=1e-3, score=1e-5)
        limits['mask_pixels_that_differ'] = row.get('mask_pixels', 0) / 1e4
        limits['pixels_that_differ'] = row.get('pixels', 0) / 1e3
        assert not {x for x, most in limits.items() if row.get(x, 0) > most}, row
        seen += row.get('boxes', 1)
        assert len(np.unique(next(iter(expected.values())))) > 1
    assert seen >= len(images)


@pytest.mark.parametrize('kind', ['retinanet', 'mask'])
def test_nothing_found(kind, paths):
    config, weights, images = paths(kind)
    option = 'rcnn.score_thr' if kind == 'mask' else 'score_thr'
    options = ['--cfg-options', f'model.test_cfg.{option}=1.0']
    export.main([config, weights, '--whole', *options])
    found = Predictor(f'{kind}.onnx')(images[0])
    assert found['boxes'].shape == (0, 4) and found['labels'].shape == (0,)
    assert kind != 'mask' or found['masks'].shape == (0, *SIZES[0])


def test_int8(paths):
    config, weights, images = paths('classifier')
    export.main([config, weights, '--whole'])
    export.main([config, weights, '--whole', '--int8', '--out', 'int8.onnx'])
    exact, rounded = (Predictor(x)(images[0]) for x in ('classifier.onnx', 'int8.onnx'))
    difference = abs(exact['scores'] - rounded['scores']).max()
    assert 0 < difference < 0.1


@pytest.mark.parametrize(
    'kind, options, message',
    [
        ('classifier', ['--verify'], 'neither --backbone-only nor --verify'),
        ('classifier', ['--format', 'torchscript'], '--whole needs --format onnx'),
        ('retinanet', ['model.test_cfg.nms.type=soft_nms'], 'nms'),
        ('retinanet', ['model.bbox_head.bbox_coder.type=TBLRBBoxCoder'], 'bbox_coder'),
        ('segmentor', ['test_dataloader.dataset.pipeline.1.type=Rerange'], 'Rerange'),
    ],
)
def test_models_that_no_file_can_hold(kind, options, message, paths, capsys):
    config, weights, _ = paths(kind)
    if '=' in options[0]:
        options = ['--cfg-options', *options]
    with pytest.raises(SystemExit) as stopped:
        export.main([config, weights, '--whole', *options])
    error = capsys.readouterr().err.strip()
    assert stopped.value.code == 2 and message in error and '\n' not in error
    assert not list(Path().glob('*.onnx'))


@pytest.mark.modern_full
def test_test_file(paths, capsys, monkeypatch):
    """The command, on data in ImageNet's layout."""
    config, weights, _ = paths('classifier')
    for name in 'abc':
        for i in range(2):
            miniatures.write_image(f'val/{name}/{i}.png', 70 + i, 80)
    with open(config, 'a', encoding='utf-8') as file:
        file.write(
            "del test_dataloader['dataset']['pipeline'][-2]\n"
            "test_dataloader['dataset'].update(type='CustomDataset', data_prefix='val',"
            "metainfo=dict(classes=list('abc')))\n"
            'test_dataloader.update(batch_size=2, num_workers=0, '
            "sampler=dict(type='DefaultSampler', shuffle=False))\n"
            "test_evaluator = dict(type='Accuracy')\ntest_cfg = dict()\n"
        )
    export.main([config, weights, '--whole'])
    monkeypatch.setattr(sys, 'argv', ['test_file.py'])
    test_file.main([config, weights, 'classifier.onnx', '--out', 'report.json'])
    report = json.loads(Path('report.json').read_text())
    assert report['classifier.onnx']['metrics'] == report['model']['metrics']
    assert report['classifier.onnx']['differences']['score'] < 1e-5
    assert 'differences: score ' in capsys.readouterr().out


def test_compared_boxes():
    boxes = np.float32([[0, 0, 9, 9], [20, 0, 30, 9], [20, 0, 30, 9]])
    expected = dict(boxes=boxes, scores=boxes[:, 0], labels=np.array([0, 1, 2]))
    order = [2, 0]
    found = {key: x[order] for key, x in expected.items()}
    found['boxes'] = found['boxes'] + np.float32(0.25)
    row = test_file.compare(found, expected)
    assert row == dict(boxes=3, boxes_without_counterpart=1, box=0.25, score=0)
    nothing = {key: x[:0] for key, x in expected.items()}
    assert test_file.compare(nothing, expected)['boxes_without_counterpart'] == 3
    assert test_file.compare(expected, nothing)['boxes_without_counterpart'] == 3
    assert test_file.compare(nothing, nothing)['boxes_without_counterpart'] == 0


def test_a_label_map_of_one_class():
    found = dict(label_map=np.int32([[0, 1], [1, 0]]))
    expected = dict(label_map=np.int64([[0, 1], [0, 0]]))
    assert test_file.compare(found, expected) == dict(pixels=4, pixels_that_differ=1)
