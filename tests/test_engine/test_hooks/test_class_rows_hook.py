import logging
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.model import BaseModel
from mmengine.optim import OptimWrapper
from mmengine.registry import DATASETS
from mmengine.runner import Runner
from torch import nn

from mmlinattn.engine import ClassRowsHook
from mmlinattn.own_config.starts import DATA_SETS

CELLS = ('cell', 'Cars', 'person')


class Model(BaseModel):
    def __init__(self, num_classes=3):
        super().__init__()
        self.trunk = nn.Linear(2, 4)
        self.fc_cls = nn.Linear(4, num_classes + 1)

    def forward(self, inputs, data_samples=None, mode='tensor', **_):
        x = self.fc_cls(self.trunk(torch.stack(inputs)))
        return dict(loss=x.mean()) if mode == 'loss' else [x]


@pytest.fixture
def load(caplog):
    """Runs the hook like a runner that trains; returns the model's new entries."""
    logger = logging.getLogger('hook')

    def run(checkpoint, data_set=None, classes=CELLS, is_training=True, resume=False):
        model = Model(len(classes))
        wrapper = OptimWrapper(torch.optim.SGD(model.parameters(), 0.1))
        runner = SimpleNamespace(
            model=model,
            optim_wrapper=wrapper if is_training else None,
            train_dataloader=SimpleNamespace(
                dataset=SimpleNamespace(metainfo=dict(classes=classes))
            ),
            logger=logger,
            _resume=resume,
        )
        hook = ClassRowsHook(data_set)
        with caplog.at_level('INFO', 'hook'):
            hook.after_load_checkpoint(runner, checkpoint)
            hook.before_train(runner)
        return checkpoint['state_dict']['fc_cls.weight']

    return run


def checkpoint_of(num_classes, **meta):
    return dict(state_dict=Model(num_classes).state_dict(), meta=meta)


@pytest.mark.parametrize(
    'meta',
    [
        dict(dataset_meta=dict(classes=('car', 'dog'))),
        dict(dataset_meta=[dict(classes=['car', 'dog']), dict(classes=['x'])]),
        dict(dataset_meta=dict(CLASSES=('car', 'dog'))),
        dict(CLASSES=('car', 'dog')),  # of versions before MMEngine
    ],
)
def test_names_in_the_checkpoint(load, meta, caplog):
    """They go before those of a data set."""
    checkpoint = checkpoint_of(2, **meta)
    before = checkpoint['state_dict']['fc_cls.weight'].clone()
    after = load(checkpoint, 'mmdet.CocoDataset')
    assert len(after) == 4 and after[1].equal(before[0]) and after[3].equal(before[2])
    (record,) = caplog.records
    assert record.getMessage() == (
        'classes that load_from knows, whose rows are carried over: Cars (car there); '
        'these start anew: cell, person'
    )


@pytest.mark.parametrize(
    'data, name', [('coco', 'car'), ('ade20k', 'car'), ('cityscapes', 'car')]
)
def test_names_of_a_data_set(load, data, name):

    known = DATASETS.get(DATA_SETS[data]).METAINFO['classes']
    checkpoint = checkpoint_of(len(known))
    before = checkpoint['state_dict']['fc_cls.weight'].clone()
    after = load(checkpoint, DATA_SETS[data])
    assert after[1].equal(before[known.index(name)])


def test_names_of_imagenet(load):
    checkpoint = checkpoint_of(1000)
    before = checkpoint['state_dict']['fc_cls.weight'].clone()
    after = load(checkpoint, DATA_SETS['imagenet'], ['goldfishes', 'x'])
    assert after[0].equal(before[1])


@pytest.mark.parametrize(
    'options', [dict(is_training=False), dict(resume=True), dict(data_set=None)]
)
def test_nothing_to_do(load, caplog, options):
    """In a test, in a resumed run, without names."""
    checkpoint = checkpoint_of(80)
    load(checkpoint, **{'data_set': 'mmdet.CocoDataset', **options})
    assert len(checkpoint['state_dict']['fc_cls.weight']) == 81 and not caplog.records


class Data(BaseDataset):
    METAINFO = dict(classes=CELLS)

    def load_data_list(self):
        return [dict(inputs=torch.ones(2))] * 2


@pytest.mark.parametrize('ema', [False, True])
def test_a_runner_loads_what_the_hook_gives(tmp_path, ema):
    """Beside an EMAHook, too."""
    checkpoint = checkpoint_of(2, dataset_meta=dict(classes=('person', 'dog')))
    torch.save(checkpoint, tmp_path / 'x.pth')
    hooks = [dict(type='EMAHook')] if ema else []
    runner = Runner(
        Model(),
        str(tmp_path),
        train_dataloader=dict(
            dataset=Data(), batch_size=1, sampler=dict(type='DefaultSampler')
        ),
        train_cfg=dict(by_epoch=True, max_epochs=1),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.0)),
        load_from=str(tmp_path / 'x.pth'),
        custom_hooks=[*hooks, dict(type='mmlinattn.ClassRowsHook')],
        default_scope='mmengine',
        experiment_name=f'rows_{ema}',
        cfg=Config(),
    )
    runner.train()
    models = [runner.model]
    if ema:
        models += [x.ema_model.module for x in runner.hooks if hasattr(x, 'ema_model')]
    for model in models:
        weight = checkpoint['state_dict']['fc_cls.weight']
        assert model.fc_cls.weight[[2, 3]].equal(weight[[0, 2]])
        assert model.trunk.weight.equal(checkpoint['state_dict']['trunk.weight'])
    assert len(models) == 1 + ema
