"""Checks before a run, in parts; test_train_test.py has whole tools, and
test_right_configs.py right configs."""

import re
import warnings
from argparse import Namespace
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from torch import nn
from torch.utils.data import IterableDataset

from mmlinattn.engine.preflight import check_channels, check_data, find_head
from mmlinattn.models import SwinTransformer
from mmlinattn.utils.log import quiet


class Data(list):
    """A dataset of some samples, or of a classifier with labels."""

    def __init__(self, samples=(None,), labels=(), **attributes):
        super().__init__(samples)
        vars(self).update(attributes, labels=labels)
        if labels:
            self.get_gt_labels = self.get_data_info = lambda i: dict(gt_label=labels[i])


class Staged(Data):
    """One that has no samples before a hook sets an epoch."""

    def __getitem__(self, index):
        raise AttributeError('epoch')


class Stream(Data, IterableDataset):
    """One without indices."""


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
    return Data(metainfo=dict(classes=('a',) * num), **more)


@pytest.mark.parametrize(
    'dataset, model, expected',
    [
        (Data([1, 2], (0, 2)), model_of(), ''),
        (Data([1, 2], ([0, 9], [1])), model_of(), ''),  # several labels of an image
        (Data([1], (None,)), model_of(), ''),  # a test set
        (Data([1, 2], (0, np.int64(3))), model_of(), 'refused'),
        (of_classes(3), model_of(), ''),
        (of_classes(4), model_of(), 'refused'),
        (of_classes(4, labels=[2]), model_of(), 'doubted'),  # none of the last
        (of_classes(4, labels=[3]), model_of(), 'refused'),
        (of_classes(2), model_of(), 'doubted'),
        (of_classes(2, cat_ids=[1, 2]), segmentor(num_classes=2, out_channels=1), ''),
        (of_classes(4, cat_ids=[]), nn.Identity(), 'refused'),
        # class-agnostic heads, such as that of mmdet's RPN, take all labels for one
        (Data([objects(7)]), model_of('bbox_head', num_classes=1), ''),
        (Data([objects(7)]), model_of('bbox_head'), 'refused'),
        (Data([label_map(0, 255)]), segmentor(), ''),
        (Data([label_map(0, 3)]), segmentor(), 'refused'),
        (Data([label_map(0, 3)]), segmentor('DiceLoss'), 'doubted'),
        (Data([label_map(0, 3)]), segmentor(ignore_index=3), ''),
        (Data([label_map(0, 1)]), segmentor(num_classes=2, out_channels=1), ''),
        (Data([]), segmentor(), 'refused'),
        (Staged(), model_of(), 'doubted'),
        (Stream([]), model_of(), ''),
    ],
)
def test_labels_and_classes(dataset, model, expected, monkeypatch):
    monkeypatch.setattr('mmengine.registry.DATASETS.build', lambda _: dataset)
    loader, doubts = dict(dataset=dict(type='Data')), []
    cfg = Config(dict(train_dataloader=loader, val_dataloader=loader))
    refusal = pytest.raises(ValueError, match='train_dataloader: ')
    with refusal if expected == 'refused' else nullcontext():
        check_data(cfg, 'train', model, doubts.append)
    assert bool(doubts) == (expected == 'doubted')
    if len(dataset) and not hasattr(dataset, 'cat_ids'):
        check_data(cfg, 'val', model, doubts.append)  # they count as errors


@pytest.mark.parametrize('name', ['train', 'val'])
def test_names_that_are_text(name, monkeypatch):
    data = Data([objects(0)], metainfo=dict(classes='abc'))
    monkeypatch.setattr('mmengine.registry.DATASETS.build', lambda _: data)
    cfg = Config({f'{name}_dataloader': dict(dataset=dict(type='Data'))})
    with pytest.raises(ValueError, match="write classes=\\('abc',\\), with the comma"):
        check_data(cfg, name, model_of('bbox_head'), [].append)


def named(*classes, **more):
    return Data([objects(0)], metainfo=dict(classes=classes), **more)


def around(*datasets):
    """Two wrappers around sets, as mmdet's are: its metainfo may be a list."""
    inner = Data([x[0] for x in datasets], datasets=list(datasets))
    inner.metainfo = [x.metainfo for x in datasets]
    return Data(list(inner), dataset=inner, metainfo=inner.metainfo)


@pytest.mark.parametrize(
    'dataset, expected',
    [
        (around(named('a', 'b', 'c'), named('a', 'b', 'c')), ''),
        (around(named('a', 'b', 'c'), named('a', 'b')), ''),
        (around(named('a', 'b', 'c'), named('b', 'c', 'a')), 'set 2: .*b, c, a.*a, b'),
        (around(named('a'), named('a', cat_ids=[])), 'set 2: .*none of its 1'),
        (around(named('a'), Data([objects(7)], metainfo={})), 'labels go up to 7'),
    ],
)
def test_sets_inside_of_wrappers(dataset, expected, monkeypatch):
    monkeypatch.setattr('mmengine.registry.DATASETS.build', lambda _: dataset)
    loader, doubts = dict(dataset=dict(type='Data')), []
    cfg, model = Config(dict(train_dataloader=loader)), model_of('bbox_head')
    refusal = pytest.raises(ValueError, match=expected or 'none')
    with refusal if expected else nullcontext():
        check_data(cfg, 'train', model, doubts.append)
    if 'b, c, a' in expected:  # a model that reads the names takes them
        model['language_model'] = nn.Identity()
        check_data(cfg, 'train', model, doubts.append)
        assert re.search(expected, doubts[0])


@pytest.mark.parametrize(
    'maps, warning',
    [
        ([label_map(0, 255, 255, 255)] * 2, '75% of the pixels'),
        ([label_map(0, 255), label_map(1, 0)], ''),
        ([label_map(0, 0)], ''),
    ],
)
def test_masks_of_0_and_255(maps, warning, monkeypatch):
    data = Data(maps)
    monkeypatch.setattr('mmengine.registry.DATASETS.build', lambda _: data)
    doubts = []
    cfg = Config(dict(train_dataloader=dict(dataset=dict(type='Data'))))
    check_data(cfg, 'train', segmentor(), doubts.append)
    assert warning in ''.join(doubts) and len(doubts) == bool(warning)


def test_head_of_a_cascade():
    head = model_of()['head']
    heads = nn.ModuleDict(dict(bbox_head=nn.ModuleList([nn.Identity(), head])))
    assert find_head(nn.ModuleDict(dict(roi_head=heads))) is head


@pytest.mark.parametrize(
    'name, head, text',
    [
        ('neck', dict(in_channels=[8, 16]), ''),
        ('neck', dict(in_channels=[8, 32]), 'model.neck has in_channels=[8, 32]'),
        ('neck', dict(in_channels=[8, 32]), 'set model.neck.in_channels=[8, 16]'),
        ('neck', dict(in_channels=[8]), ': set model.backbone.out_indices=(0,)'),
        ('neck', dict(in_channels=[16]), ': set model.backbone.out_indices=(1,)'),
        (
            'neck',
            dict(in_channels=[32]),
            ': set model.backbone.out_indices=(1,) and model.neck.in_channels=[16]',
        ),
        ('neck', dict(in_channels=[8, 16, 32]), 'model.neck has'),
        ('decode_head', dict(in_channels=16, in_index=-1), ''),
        ('decode_head', dict(in_channels=[8, 16], in_index=[0, 1]), ''),
        ('decode_head', dict(in_channels=[8, 16], in_index=[1, 2]), 'in_index=[1, 2]'),
        ('auxiliary_head', dict(in_channels=8, in_index=1), 'model.auxiliary_head has'),
        (
            'decode_head',
            dict(in_channels=8, in_index=3),
            ': set model.decode_head.in_index=1 and in_channels=16',
        ),
        (
            'decode_head',
            dict(in_channels=[8, 32], in_index=[0, 1]),
            ': set model.decode_head.in_index=[0, 1] and in_channels=[8, 16]',
        ),
    ],
)
def test_channels_of_necks_and_heads(name, head, text):
    arch = dict(embed_dims=8, depths=[1, 1], num_heads=[1, 1])
    model = nn.ModuleDict(dict(backbone=SwinTransformer(arch), **{name: nn.Module()}))
    vars(model[name]).update(head)
    refusal = pytest.raises(ValueError, match=re.escape(text or 'none'))
    with refusal if text else nullcontext():
        check_channels(model)


def test_maps_of_other_backbones_are_not_judged():
    model = nn.ModuleDict(dict(backbone=nn.Module(), neck=nn.Module()))
    model.backbone.feature_channels = 8, 16
    model.neck.in_channels = [3]
    check_channels(model)


def test_quiet(recwarn):
    logger = MMLogger.get_current_instance()
    level = logger.level
    with quiet():
        warnings.warn('hidden', stacklevel=1)
        assert logger.level > level
    assert not len(recwarn) and logger.level == level
