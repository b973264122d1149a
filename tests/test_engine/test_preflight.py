"""What is checked before a run, in parts; test_bad_input.py has whole tools, and
test_right_configs.py what must pass."""

import json
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
from mmlinattn.engine.part_errors import has_own_code, quiet, reason
from mmlinattn.engine.preflight import Preflight, Refusal
from mmlinattn.engine.preflight_data import annotations, find_head, problems

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


def head_of(name='head', loss='CrossEntropyLoss', **attributes):
    """A model whose head has attributes."""
    head = nn.Module()
    head.num_classes = 3
    head.loss_module = head.loss_decode = type(loss, (nn.Module,), {})()
    vars(head).update(attributes)
    return nn.ModuleDict({name: head})


def found(dataset, model, sample=None, trains=True):
    loader = Namespace(dataset=dataset)
    return [x.fatal for x in problems(loader, sample, model, trains)]


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
    assert not found(dataset, head_of())


@pytest.mark.parametrize(
    'dataset, model, fatal',
    [
        (Labels(*[0] * 5000, 3), head_of(), True),
        (Labels(0, 3), head_of(loss='MyLoss'), False),
        (Namespace(metainfo=dict(classes=tuple('abcd'))), head_of(), False),
        (Namespace(metainfo=dict(classes=tuple('ab'))), head_of(), False),
    ],
)
def test_labels_that_the_head_has_not(dataset, model, fatal):
    assert found(dataset, model) == [fatal]
    assert found(dataset, model, trains=False) == [False]


def test_head_of_one_class():
    """Class-agnostic heads, such as that of mmdet's RPN, take all labels for one."""
    one = head_of('bbox_head', num_classes=1)
    objects = Namespace(gt_instances=Namespace(labels=torch.tensor([7])))
    assert not found(Namespace(), one, dict(data_samples=objects))
    assert found(Namespace(), head_of(), dict(data_samples=objects)) == [True]


@pytest.mark.parametrize(
    'largest, attributes, expected',
    [
        (2, {}, []),
        (255, {}, []),
        (3, {}, [True]),
        (3, dict(ignore_index=3), []),
        (255, dict(ignore_index=3), [True]),
        (3, dict(loss_decode=nn.Identity()), [False]),  # a Dice loss takes any label
        (1, dict(num_classes=2, out_channels=1), []),
        (2, dict(num_classes=2, out_channels=1), [True]),
    ],
)
def test_label_map(largest, attributes, expected):
    target = Namespace(data=torch.tensor([[0, largest]]))
    sample = dict(data_samples=Namespace(gt_sem_seg=target))
    model = head_of('decode_head', **{'ignore_index': 255, **attributes})
    assert found(Namespace(), model, sample) == expected


@pytest.mark.parametrize('sample', [{}, dict(data_samples=[]), (1, 2), None])
def test_sample_without_a_label_map(sample):
    assert not found(Namespace(), head_of(ignore_index=255), sample)


@pytest.mark.parametrize('known, fatal', [([], [True]), ([1], [False]), ([1, 2], [])])
def test_classes_of_annotations(tmp_path, known, fatal):
    path = tmp_path / 'x.json'
    path.write_text(json.dumps(dict(categories=[dict(name='ship')])))
    meta = dict(classes=('cat', 'dog'))
    dataset = Namespace(metainfo=meta, cat_ids=known, ann_file=str(path))
    texts = list(problems(Namespace(dataset=dataset), None, nn.Identity(), True))
    assert [x.fatal for x in texts] == fatal
    if not known:
        assert '(cat, dog)' in texts[0].text and '(ship)' in texts[0].text


def test_number_of_classes():
    head = head_of()['head']
    heads = nn.ModuleDict(dict(bbox_head=nn.ModuleList([nn.Identity(), head])))
    assert find_head(nn.ModuleDict(dict(roi_head=heads))) is head
    assert find_head(nn.Identity()) is None


def test_annotation_file_of_a_wrapped_dataset():
    dataset = dict(type='Repeat', dataset=dict(type='Coco', ann_file='x.json'))
    assert annotations(dict(dataset=dataset)) == ", ann_file='x.json'"
    assert annotations(dict(dataset=dict(type='ImageNet'))) == ''


def error_of(call, *args):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(*args)
    return caught.value


def test_reason_names_the_likely_argument():
    cfg = [dict(type='LoggerHook', intervl=1), dict(intervl=2)]
    error = error_of(HOOKS.build, cfg[0])
    assert reason(error, cfg).endswith("'intervl'; did you mean 'interval'?")
    assert reason(error).endswith("'intervl'")


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


def fail(text):
    def build(cfg):
        raise RuntimeError(text)

    return build


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
    flight = Preflight(Config(known), 'train')
    if sure:
        with pytest.raises(Refusal, match=f'part: {text}'):
            flight.build('part', fail(text), cfg)
    else:
        assert flight.build('part', fail(text), cfg) is None
        assert flight.doubts == [f'part: {text}']


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
    monkeypatch.setattr(Preflight, 'check', lambda self: torch.rand(3))
    torch.manual_seed(1)
    first = torch.rand(2)
    torch.manual_seed(1)
    preflight.check_run(Config(), 'x.py', 'train', print)
    assert torch.rand(2).equal(first)
