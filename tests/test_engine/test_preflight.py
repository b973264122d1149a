"""Checks before a run, in parts; test_bad_input.py has whole tools, and
test_right_configs.py valid configs."""

import sys
import warnings
from argparse import Namespace

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from mmengine.registry import HOOKS, DefaultScope
from torch import nn

from mmlinattn.engine import preflight
from mmlinattn.engine.part_errors import has_own_code, reason
from mmlinattn.engine.preflight import Preflight, Refusal
from mmlinattn.engine.preflight_data import (
    annotations,
    channel_conflict,
    find_head,
    problems,
)
from mmlinattn.utils.quiet import quiet

pytestmark = pytest.mark.modern


class Labels:
    """A dataset of a classifier."""

    def __init__(self, *labels):
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def get_data_info(self, index):
        return {} if self.labels[index] is None else dict(gt_label=self.labels[index])

    def get_gt_labels(self):
        raise AssertionError('it takes long')


def model_of(name='head', **attributes):
    """A model whose head has three outputs."""
    head = nn.Module()
    vars(head).update(dict(num_classes=3), **attributes)
    return nn.ModuleDict({name: head})


def segmentor(loss='CrossEntropyLoss', **attributes):
    loss = type(loss, (nn.Module,), {})()
    options = dict(dict(ignore_index=255), **attributes)
    return model_of('decode_head', loss_decode=loss, **options)


def objects(*labels):
    instances = Namespace(labels=torch.tensor(labels))
    return dict(data_samples=Namespace(gt_instances=instances))


def label_map(*labels):
    target = Namespace(data=torch.tensor([labels]))
    return dict(data_samples=Namespace(gt_sem_seg=target))


def of_classes(num, **more):
    return Namespace(metainfo=dict(classes=('a',) * num), **more)


@pytest.mark.parametrize(
    'dataset, sample, model, expected',
    [
        (Labels(0, 2), None, model_of(), []),
        (Labels([0, 9], [1]), None, model_of(), []),  # several labels of an image
        (Labels(None), None, model_of(), []),  # a test set
        (Labels(*[0] * 5000, np.int64(3)), None, model_of(), [True]),
        (of_classes(3), None, model_of(), []),
        (of_classes(4), None, model_of(), [False]),
        (of_classes(4, cat_ids=[1]), None, nn.Identity(), [False]),
        (of_classes(4, cat_ids=[]), None, nn.Identity(), [True]),
        # class-agnostic heads, such as that of mmdet's RPN, take all labels for one
        (Namespace(), objects(7), model_of('bbox_head', num_classes=1), []),
        (Namespace(), objects(7), model_of('bbox_head'), [True]),
        (Namespace(), label_map(0, 255), segmentor(), []),
        (Namespace(), label_map(0, 3), segmentor(), [True]),
        (Namespace(), label_map(0, 3), segmentor('DiceLoss'), [False]),
        (Namespace(), label_map(0, 3), segmentor(ignore_index=3), []),
        (Namespace(), label_map(0, 1), segmentor(num_classes=2, out_channels=1), []),
        (Namespace(), dict(data_samples=[]), segmentor(), []),
    ],
)
def test_labels_and_classes(dataset, sample, model, expected):
    assert [x for _, x in problems(dataset, sample, model, True)] == expected
    if sample is not None:  # a test counts such labels as errors
        assert not any(x for _, x in problems(dataset, sample, model, False))


def test_number_of_classes():
    head = model_of()['head']
    heads = nn.ModuleDict(dict(bbox_head=nn.ModuleList([nn.Identity(), head])))
    assert find_head(nn.ModuleDict(dict(roi_head=heads))) is head
    assert find_head(nn.Identity()) is None


@pytest.mark.parametrize(
    'name, head, text',
    [
        ('neck', dict(in_channels=[8, 16]), ''),
        ('neck', dict(in_channels=[8, 32]), 'model.neck has in_channels=[8, 32]'),
        (
            'neck',
            dict(in_channels=[8, 16, 32]),
            'model.neck has in_channels=[8, 16, 32]',
        ),
        ('decode_head', dict(in_channels=16, in_index=-1), ''),
        ('decode_head', dict(in_channels=24, in_index=[0, 1]), ''),
        ('decode_head', dict(in_channels=[8, 16], in_index=[0, 1]), ''),
        ('decode_head', dict(in_channels=[8, 16], in_index=[1, 2]), 'in_index=[1, 2]'),
        ('auxiliary_head', dict(in_channels=8, in_index=1), 'model.auxiliary_head has'),
    ],
)
def test_channels_of_necks_and_heads(name, head, text):
    model = nn.ModuleDict({'backbone': nn.Module(), name: nn.Module()})
    vars(model.backbone).update(feature_channels=(8, 16))
    vars(model[name]).update(head)
    found = channel_conflict(model)
    assert text in found and bool(text) == bool(found)


def test_annotation_file_of_a_wrapped_dataset():
    dataset = dict(type='Repeat', dataset=dict(type='Coco', ann_file='x.json'))
    assert annotations(dict(dataset=dataset)) == ", ann_file='x.json'"
    assert annotations(dict(dataset=dict(type='ImageNet'))) == ''


def error_of(call, *args):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(*args)
    return caught.value


def test_reason_names_what_was_meant():
    cfg = [dict(type='LoggerHook', intervl=1), dict(intervl=2)]
    error = error_of(HOOKS.build, cfg[0])
    assert reason(error, cfg).endswith("'intervl'; did you mean 'interval'?")
    assert reason(error).endswith("'intervl'")
    cfg = dict(type='mmengine.LogerHook')
    text = reason(error_of(HOOKS.build, cfg), cfg)
    assert text.endswith("no hook is 'LogerHook'; did you mean 'LoggerHook'?")


@pytest.mark.parametrize('scope', ['mmdet', 'mmnothing'])
def test_reason_names_a_library_that_is_missing(scope, monkeypatch):
    monkeypatch.setitem(sys.modules, 'mmdet.registry', None)
    with DefaultScope.overwrite_default_scope(scope):
        text = reason(error_of(HOOKS.build, dict(type='NoHook')))
    assert text.startswith(f'{scope} can not be imported: ') and scope in text[30:]


def test_reason_of_an_error_without_words():
    assert reason(error_of(lambda: {}['images'])) == "it has no 'images'"
    assert reason(ValueError('x')) == 'x'
    text = reason(error_of(np.concatenate, []))
    assert text.startswith('there are no samples')

    def stop():
        raise AssertionError

    assert reason(error_of(stop)) == "AssertionError in 'raise AssertionError'"


def test_own_code():
    kinds = 'LoggerHook', HOOKS.get('LoggerHook'), 'DefaultOptimWrapperConstructor'
    assert not any(has_own_code(dict(x=[dict(type=kind)])) for kind in kinds)
    assert has_own_code([dict(x=dict(type=Labels))])
    assert has_own_code(dict(constructor=Labels))
    assert not has_own_code([None, dict(type='random'), dict(type='gone')])


@pytest.mark.parametrize(
    'text, cfg, known, sure',
    [
        ('wrong', {}, {}, True),
        ('wrong', dict(type=Labels), {}, False),
        ("got an unexpected keyword argument 'x'", dict(type=Labels), {}, True),
        ('wrong', {}, dict(runner_type='Mine'), False),
        ('wrong', {}, dict(runner_type='FlexibleRunner'), True),
        # a run has devices, and a group of processes, that the checks have not
        ('fused needs CUDA', {}, {}, False),
        ('Default process group has not been initialized', {}, {}, False),
    ],
)
def test_what_is_sure_to_fail(text, cfg, known, sure):
    doubts = []
    flight = Preflight(Config(known), 'train', doubts.append)

    def fail(cfg):
        raise RuntimeError(text)

    if sure:
        with pytest.raises(Refusal, match=f'part: {text}'):
            flight.build('part', fail, cfg)
    else:
        assert flight.build('part', fail, cfg) is None
        assert doubts == [f'part: {text}']


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
    """The checks change no run, with a seed or without."""
    monkeypatch.setattr(Preflight, 'check', lambda self: torch.rand(3))
    torch.manual_seed(1)
    first = torch.rand(2)
    torch.manual_seed(1)
    preflight.check_run(Config(), 'x.py', 'train', print)
    assert torch.rand(2).equal(first)
