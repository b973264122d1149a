"""Test data inside of wrappers, and what checkpoints and predictions say."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from loading import ROOT
from mmengine.config import Config

from mmlinattn.runs import preparation as runs
from mmlinattn.runs.library_options import use_test_time_augmentation
from mmlinattn.utils import load_config

pytestmark = pytest.mark.openmmlab


def around(*datasets):
    """A config of a test on several data sets, one of them repeated."""
    repeated = dict(type='RepeatDataset', times=2, dataset=datasets[0])
    inner = [repeated, *datasets[1:]]
    dataset = dict(type='ConcatDataset', datasets=inner)
    return Config(dict(default_scope='mmdet', test_dataloader=dict(dataset=dataset)))


def one(name):
    steps = [dict(type='LoadImageFromFile'), dict(type='PackDetInputs')]
    return dict(type='CocoDataset', ann_file=name, pipeline=steps)


def test_the_first_of_several_sets():
    cfg = around(one('a'), one('b'))
    assert runs.test_dataset(cfg).ann_file == 'a'
    assert runs.test_data(Config()) == {}
    with pytest.raises(ValueError, match='has no pipeline'):
        runs.test_dataset(Config(dict(test_dataloader=dict(dataset=dict(type='X')))))


@pytest.mark.parametrize(
    'name, option',
    [
        ('soft/softpp-micro-linear_in1k.py', '--whole'),
        ('soft/sparse-rcnn_soft-s_fpn_3x_coco.py', '--backbone-only'),
    ],
)
def test_export_options(name, option):
    """What a training says can be done with its model."""
    cfg = load_config(str(ROOT / 'configs' / name))
    assert runs.export_options(cfg) == [option, '--verify']


@pytest.mark.parametrize(
    'meta, classes',
    [
        (dict(dataset_meta=dict(classes=['a'])), ['a']),
        (dict(dataset_meta=[dict(classes=['a']), dict(classes=['a', 'b'])]), ['a']),
        (dict(dataset_meta=None), None),
        (None, None),
    ],
)
def test_classes_in_checkpoints(meta, classes):
    assert runs.learned_meta(dict(meta=meta)).get('classes') == classes


def test_label_map_of_one_output():
    """A threshold gives floats, in which no names can be looked up."""
    labels = torch.tensor([[[0.0, 1.0]]])
    sample = dict(pred_sem_seg=SimpleNamespace(data=labels))
    sample = type('Sample', (dict,), {'__getattr__': dict.__getitem__})(sample)
    label_map = runs.predictions_of(sample)['label_map']
    assert label_map.dtype == np.int64 and label_map.tolist() == [[0, 1]]


@pytest.mark.parametrize('own', [False, True])
def test_augmentation_of_several_sets(own):
    cfg = around(one('a'), one('b'))
    cfg.model = dict(type='RetinaNet')
    if own:
        cfg.tta_pipeline = [dict(type='TestTimeAug')]
    use_test_time_augmentation(cfg)
    repeated, second = cfg.test_dataloader.dataset.datasets
    for dataset in (repeated.dataset, second):
        assert dataset.pipeline[-1].type == 'TestTimeAug'
        assert len(dataset.pipeline) == (1 if own else 2)
    assert cfg.model.type == 'DetTTAModel' and cfg.model.module.type == 'RetinaNet'
