"""The command that tries the models of other libraries."""

from importlib import import_module
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / 'benchmarks'


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module


def test_models_of_other_libraries_run_or_say_why(load):
    """In a table by library; failures of a compiled mmcv are no fault of ours."""
    models = load('openmmlab_models')
    folder = Path(import_module('mmdet').__file__).parent / '.mim/configs/retinanet'
    retinanet = models.Config.fromfile(folder / 'retinanet_r18_fpn_1x_coco.py').model
    models.init_default_scope('mmdet')
    found = models.run_apart(100, 'mmdet', retinanet, None)
    assert found['operators'] == ['nms'], found
    broken = models.ConfigDict(type='NoDetector')
    no_detector = models.run_apart(100, 'mmdet', broken, None)
    assert no_detector['step'] == 'build'
    text = 'NotImplementedError: rotated is not among the operators of mmlinattn'
    needs = dict(step='train', error=text, operators=[])
    names = dict(a=['a', 'b'], c=['c'], d=['d'], e=['e'])
    results = dict(a=found, c=no_detector, d=needs, e=dict(no_detector, error='x|y'))
    there = dict(mmdet=dict(results=dict(c=no_detector, e=found)))
    lines = models.page(dict(mmdet=dict(names=names, results=results)), there)
    assert '\n| mmdet | 5 | 2 | 1 | 1 | 1 |\n' in lines
    assert '\n| mmdet: e | fails | build | x/y |\n' in lines
    assert '\n| mmdet: c | fails with both | build |' in lines
    assert f'\n| mmdet: d | needs rotated | train | {text} |\n' in lines
