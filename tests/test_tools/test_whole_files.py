"""Whole models in ONNX files predict like their libraries."""

import json
import re
from argparse import Namespace
from pathlib import Path

import analysis_models as miniatures
import numpy as np
import pytest
import torch

from mmlinattn.commands import export
from mmlinattn.commands.compare_predictions import Subject
from mmlinattn.deployment import Predictor, WholeModel
from mmlinattn.engine import build_model
from mmlinattn.runs.preparation import predictions_of
from mmlinattn.utils import load_config

RATIO = "dict(type='Resize', scale=(150, 90), keep_ratio=True)"
# regions in padding have equal scores, of which runtimes keep different ones
UNPADDED = "dict(type='Resize', scale=(160, 96), keep_ratio=False)"
EDGE = (
    "dict(type='ResizeEdge', scale=72, edge='short', backend='pillow', "
    "interpolation='bicubic'), dict(type='CenterCrop', crop_size=64)"
)
UPERNET = """
model['decode_head'] = dict(
    type='UPerHead', in_channels=[8, 16], in_index=[0, 1], pool_scales=(1, 2),
    channels=8, num_classes=4, norm_cfg=dict(type='BN'),
)
"""
# Windows of 64 x 48 that overlap, and one that is larger than the image's height.
SLIDE = "model['test_cfg'] = dict(mode='slide', crop_size=(64, 48), stride=(40, 32))\n"
STEPS = dict(classifier=EDGE, mask=UNPADDED, faster=UNPADDED)
OPTIONS = dict(segmentor=UPERNET, slide=UPERNET + SLIDE)
TEST = """
test_dataloader['dataset'].update(
    ann_file='coco.json', data_prefix=dict(img=''), test_mode=True
)
test_dataloader.update(
    batch_size=2, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False)
)
test_evaluator = dict(
    type='CocoMetric', ann_file='coco.json', metric=['bbox', 'segm']
)
test_cfg = dict()
default_hooks = dict(visualization=dict(type='DetVisualizationHook', draw=True))
visualizer = dict(type='DetLocalVisualizer')
"""
SIZES = ((60, 90), (130, 97), (64, 200))
ONE_STACK = pytest.mark.modern_full


@pytest.fixture
def paths(tmp_path, monkeypatch):
    """Paths of the config, the weights and images of a small model."""
    monkeypatch.chdir(tmp_path)

    def make(kind, least=-17):
        name = 'segmentor' if kind == 'slide' else kind
        config = miniatures.write_config('', kind, name, miniatures.QUICK)
        steps = STEPS.get(kind, RATIO)
        with open(config, 'a', encoding='utf-8') as file:
            file.write(OPTIONS.get(kind, ''))
            file.write(f"\ntest_dataloader['dataset']['pipeline'][1:2] = [{steps}]\n")
        torch.manual_seed(0)
        classes = dict(dataset_meta=dict(classes=('one', 'two', 'three')))
        weights = miniatures.save_weights(config, 'weights.pth', meta=classes)
        saved = torch.load(weights)
        for key, value in saved['state_dict'].items():
            if name == 'segmentor' and key.startswith('decode_head'):
                value *= not key.endswith('bias')  # no class everywhere
            if key == 'rpn_head.rpn_cls.bias':
                value += least  # regions are ranked by scores as low as 1e-8
        torch.save(saved, weights)
        images = [
            miniatures.write_image(f'{height}.png', height, width)
            for height, width in SIZES
        ]
        return config, weights, images

    return make


def predictions(config, weights, images):
    """The library's predictions for images."""
    model = Subject(config, weights)
    return [predictions_of(model.predict(path)) for path in images]


def compare(predicted, expected):
    """Differences of the predictions for an image: boxes without one of their label
    within a pixel, the largest difference of a score, pixels that differ."""
    if 'label_map' in expected:
        return dict(pixels=np.sum(predicted['label_map'] != expected['label_map']))
    if 'boxes' not in expected:
        return dict(score=abs(predicted['scores'] - expected['scores']).max())
    gaps = abs(predicted['boxes'][:, None] - expected['boxes']).max(-1)
    gaps[predicted['labels'][:, None] != expected['labels']] = np.inf
    i, j = np.nonzero((gaps < 1e-3) & (gaps == gaps.min(0, initial=np.inf)))
    row = dict(alone=max(gaps.shape) - len({*i}))
    row['score'] = abs(predicted['scores'][i] - expected['scores'][j]).max(initial=0)
    if 'masks' in expected:
        row['pixels'] = np.sum(predicted['masks'][i] != expected['masks'][j])
    return row


@pytest.mark.parametrize(
    'kind',
    [
        *('mask', 'segmentor', 'classifier'),
        *(pytest.param(x, marks=ONE_STACK) for x in ('retinanet', 'atss', 'slide')),
        pytest.param('faster', marks=pytest.mark.full),  # the boxes of 'mask'
    ],
)
def test_predictions_are_those_of_the_library(kind, paths, capsys):
    config, weights, images = paths(kind)
    export.main([config, weights, '--whole', '--shape', '75', '101'])
    assert f'{kind}.onnx: ' in capsys.readouterr().out
    predictor = Predictor(f'{kind}.onnx')
    assert predictor.classes == ['one', 'two', 'three']
    seen = 0
    for path, expected in zip(images, predictions(config, weights, images)):
        predicted = predictor(path)
        assert predicted.keys() == expected.keys()
        for name, value in expected.items():
            assert predicted[name].shape == value.shape
            assert predicted[name].dtype == value.dtype or name == 'label_map'
        row = compare(predicted, expected)
        # values within rounding of a threshold, or of those of another class
        limits = dict(alone=0, score=1e-5, pixels=20)
        assert not {x for x, most in limits.items() if row.get(x, 0) > most}, row
        seen += len(expected.get('boxes', [1]))
        assert len(np.unique(next(iter(expected.values())))) > 1
    assert seen >= len(images)


@ONE_STACK
@pytest.mark.parametrize('half', (False, True))
def test_average_precision_is_that_of_the_test(half, paths, capsys, monkeypatch):
    """Annotations are some of the model's own predictions."""
    # float16 has few numbers next to -17
    config, weights, images = paths('mask', *[0] * half)
    module = 'mmdet.evaluation.metrics.coco_metric.round'  # to three digits
    monkeypatch.setattr(module, lambda value, digits: value, raising=False)
    pictures = [
        dict(id=i, file_name=path, height=height, width=width)
        for i, (path, (height, width)) in enumerate(zip(images, SIZES))
    ]
    objects = []
    for i, predicted in enumerate(predictions(config, weights, images)):
        rows = zip(predicted['boxes'][::2].tolist(), predicted['labels'][::2].tolist())
        for (x, y, x2, y2), label in rows:
            entry = dict(id=len(objects) + 1, image_id=i, category_id=label, iscrowd=0)
            entry.update(bbox=[x, y, x2 - x, y2 - y], area=(x2 - x) * (y2 - y))
            objects.append(dict(entry, segmentation=[[x, y, x2, y, x2, y2, x, y2]]))
    categories = [dict(id=i, name=name) for i, name in enumerate('xyz')]
    content = dict(images=pictures, annotations=objects, categories=categories)
    Path('coco.json').write_text(json.dumps(content))
    with open(config, 'a', encoding='utf-8') as file:
        file.write(TEST)
    export.main([config, weights, '--whole', '--verify', *['--half'] * half])
    printed = capsys.readouterr().out
    metrics = {
        name: dict(re.findall(r'(\S+_mAP) ([\d.e-]+)', text))
        for name, text in re.findall(r'^(.+): (.* ms a photo, .*)$', printed, re.M)
    }
    rounded = 'mask.onnx, as a GPU rounds'
    assert list(metrics) == ['model', 'mask.onnx', *[rounded] * half]
    verdict = (
        "verdict: the file gives the model's results: worst difference of a metric"
    )
    assert printed.splitlines()[-1].startswith(verdict)
    for key, value in metrics['model'].items():
        assert float(value) > 0.01
        for reported in metrics.values():
            assert abs(float(reported[key]) - float(value)) < (1e-2 if half else 1e-4)
    assert Predictor('mask.onnx').classes == ['one', 'two', 'three']


def test_model_that_predicts_otherwise(paths):
    """Such as mmdet's PanopticFPN, a Mask R-CNN with another head."""
    config, *_ = paths('mask')
    model = build_model(load_config(config))
    more = dict(predict=lambda self, *args: None)
    model.__class__ = type('PanopticFPN', (type(model),), more)
    with pytest.raises(ValueError, match='PanopticFPN can not be .* TwoStageDetector'):
        WholeModel(model, [], {})


@ONE_STACK
def test_nothing_found(paths):
    config, weights, images = paths('mask')
    options = ['--cfg-options', 'model.test_cfg.rcnn.score_thr=1.0']
    export.main([config, weights, '--whole', *options])
    predicted = Predictor('mask.onnx')(images[0])
    assert predicted['boxes'].shape == (0, 4) and predicted['labels'].shape == (0,)
    assert predicted['masks'].shape == (0, *SIZES[0])


@ONE_STACK
@pytest.mark.parametrize(
    'kind, options, message',
    [
        ('classifier', ['--backbone-only'], 'and no --backbone-only'),
        ('classifier', ['--format', 'export'], '--whole needs --format onnx'),
        ('retinanet', ['model.test_cfg.nms.type=soft_nms'], 'nms'),
        ('retinanet', ['model.bbox_head.bbox_coder.type=TBLRBBoxCoder'], 'bbox_coder'),
        ('segmentor', ['test_dataloader.dataset.pipeline.1.type=Rerange'], 'Rerange'),
    ],
)
def test_models_that_no_file_can_hold(kind, options, message, paths, error_of):
    config, weights, _ = paths(kind)
    if '=' in options[0]:
        options = ['--cfg-options', *options]
    assert message in error_of(export.main, [config, weights, '--whole', *options])
    assert not list(Path().glob('*.onnx'))


def test_metrics_are_compared_one_by_one():
    def difference(first, second):
        return export.worst_difference(*(export.Outcome(x, 0) for x in (first, second)))

    first = dict(top1=1.0, recall=[2.0, 3.0])
    second = dict(first, top1=1.001)
    assert difference(first, second) == pytest.approx(0.001)
    assert difference({}, {}) == 0
    nothing = dict(first, top1=float('nan'))
    assert difference(nothing, nothing) == 0
    assert difference(first, nothing) == float('inf')


def test_metrics_of_zero_say_nothing(monkeypatch, capsys):
    outcome = export.Outcome(dict(bbox_mAP=0.0, bbox_mAP_s=-1.0), 0.1)
    monkeypatch.setattr(export, 'run_tests', lambda *args: [outcome, outcome])
    args = Namespace(tolerance=1e-4, half=False)
    assert export.verify_whole({}, None, None, args)
    assert 'verdict: none' in capsys.readouterr().out
