"""What is checked before a run, in parts; test_bad_input.py has whole tools."""

import warnings
from argparse import Namespace

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.registry import HOOKS
from torch import nn

from mmlinattn.engine import preflight
from mmlinattn.engine.part_errors import part, quiet
from mmlinattn.engine.preflight_data import (
    annotations,
    check_classes,
    check_label_map,
    count_classes,
)

pytestmark = pytest.mark.modern


class Labels:
    """A dataset of a classifier."""

    def __init__(self, *labels):
        self.labels = labels

    def get_data_info(self, index):
        return {} if self.labels[index] is None else dict(gt_label=self.labels[index])

    def get_gt_labels(self):
        return np.array(self.labels)


@pytest.mark.parametrize(
    'dataset',
    [
        Labels(0, 2),
        Labels(np.int64(2)),
        Labels([0, 9], [1]),  # several labels of an image
        Labels(None),  # a test set
        Namespace(metainfo=dict(classes=('a', 'b', 'c'))),
        Namespace(metainfo=dict(classes=('a',) * 9, thing_classes=('a',) * 3)),
        Namespace(),
    ],
)
def test_labels_that_the_head_has(dataset):
    check_classes(dataset, 3)
    check_classes(dataset, None)


@pytest.mark.parametrize(
    'dataset', [Labels(0, 3), Namespace(metainfo=dict(classes=tuple('abcd')))]
)
def test_labels_that_the_head_has_not(dataset):
    with pytest.raises(ValueError, match=r'up to 3.*num_classes=3, for labels 0 to 2'):
        check_classes(dataset, 3)


@pytest.mark.parametrize('largest, fine', [(2, True), (3, False), (255, True)])
def test_label_map(largest, fine):
    target = Namespace(data=torch.tensor([[0, largest]]))
    sample = dict(data_samples=Namespace(gt_sem_seg=target))
    if fine:
        check_label_map(sample, 3)
    else:
        with pytest.raises(ValueError, match='its label map has 3'):
            check_label_map(sample, 3)


@pytest.mark.parametrize('sample', [{}, dict(data_samples=[]), (1, 2)])
def test_sample_without_a_label_map(sample):
    check_label_map(sample, 3)


def test_number_of_classes():
    head = nn.Identity()
    head.num_classes = 5
    assert count_classes(nn.ModuleDict(dict(bbox_head=head))) == 5
    heads = nn.ModuleDict(dict(bbox_head=nn.ModuleList([nn.Identity(), head])))
    assert count_classes(nn.ModuleDict(dict(roi_head=heads))) == 5
    assert count_classes(nn.Identity()) is None


def test_annotation_file_of_a_wrapped_dataset():
    dataset = dict(type='Repeat', dataset=dict(type='Coco', ann_file='x.json'))
    assert annotations(dataset) == ", ann_file='x.json'"
    assert annotations(dict(type='ImageNet')) == ''


def test_part_names_the_likely_argument():
    words = r"^hooks: .*'intervl'; did you mean 'interval'"
    with pytest.raises(ValueError, match=words), part('hooks'):
        HOOKS.build(dict(type='LoggerHook', intervl=1))


def test_part_names_a_missing_key():
    with pytest.raises(ValueError, match=r"^data: it has no 'images'$"), part('data'):
        {}['images']


def test_quiet():
    logger = MMLogger.get_current_instance()
    level = logger.level
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter('always')
        with quiet():
            warnings.warn('hidden', stacklevel=1)
            assert logger.level > level
    assert not seen and logger.level == level


def test_random_numbers_go_on(monkeypatch):
    """A run with a seed, or without, is what it is without the checks."""
    monkeypatch.setattr(preflight, 'check_keys_of', lambda *args: None)
    monkeypatch.setattr(preflight, 'build_parts', lambda *args: torch.rand(3))
    torch.manual_seed(1)
    first = torch.rand(2)
    torch.manual_seed(1)
    preflight.check_run(Config(), 'x.py', 'train')
    assert torch.rand(2).equal(first)
