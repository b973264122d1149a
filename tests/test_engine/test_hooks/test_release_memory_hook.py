"""Memory that workers of a validation take over from a training."""

import platform
from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn

from mmlinattn.engine import ReleaseMemoryHook
from mmlinattn.engine.hooks import release_memory_hook
from mmlinattn.runs import training
from mmlinattn.utils.measuring import resident

FREED = 200 << 20  # bytes
PIECE = 64 << 10  # smaller than what glibc gives back by itself


class Training(torch.utils.data.Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return dict(inputs=torch.ones(1))


class MemoryOfWorker(Training):
    def __getitem__(self, index):
        return dict(inputs=torch.tensor([resident('VmRSS')]))


class Model(BaseModel):
    """A step of its training frees memory that does not lie at the end of the heap."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, inputs, mode='tensor'):
        if mode == 'predict':
            return inputs
        pieces = [bytes(PIECE) for _ in range(FREED // PIECE)]
        self.last = pieces[-1]
        return dict(loss=self.weight.sum())


class Last(BaseMetric):
    def process(self, data_batch, data_samples):
        self.results += [int(x) for x in data_samples]

    def compute_metrics(self, results):
        return dict(bytes=results[-1])


def train(work_dir, hooks, epochs=1, **options):
    """Return a runner that has trained and validated."""
    loader = dict(batch_size=1, sampler=dict(type='DefaultSampler', shuffle=False))
    runner = Runner(
        Model(),
        work_dir=str(work_dir),
        train_dataloader=dict(loader, dataset=Training()),
        val_dataloader=dict(loader, dataset=MemoryOfWorker(), **options),
        train_cfg=dict(by_epoch=True, max_epochs=epochs),
        val_cfg=dict(),
        val_evaluator=[Last()],
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.0)),
        default_scope='mmengine',
        experiment_name=work_dir.name,
    )
    for hook in hooks:
        runner.register_hook(hook)
    runner.train()
    return runner


def memory_of_worker(*args):
    runner = train(*args, num_workers=1)
    return runner.message_hub.get_scalar('val/bytes').current()


@pytest.mark.skipif(platform.libc_ver()[0] != 'glibc', reason='another C library')
def test_workers_hold_no_memory_that_was_freed(tmp_path):
    by_default = memory_of_worker(tmp_path / 'default', [])
    released = memory_of_worker(tmp_path / 'released', [ReleaseMemoryHook()])
    assert released < by_default - FREED / 2


@pytest.mark.parametrize(
    'options, times',
    [
        (dict(num_workers=0), 2),
        (dict(num_workers=1), 4),
        (dict(num_workers=1, persistent_workers=True), 3),
    ],
)
def test_memory_is_returned_where_workers_begin(tmp_path, monkeypatch, options, times):
    """And after each of two validations."""
    releases = []
    monkeypatch.setattr(
        release_memory_hook, 'release_memory', lambda: releases.append(1)
    )
    train(tmp_path, [ReleaseMemoryHook()], epochs=2, **options)
    assert len(releases) == times


@pytest.mark.parametrize('own', [[], [ReleaseMemoryHook()]])
def test_the_command_adds_it_once(own):
    """Configs of version 0.2.0 have it among their default hooks."""
    hooks = [*own]
    runner = SimpleNamespace(hooks=hooks, register_hook=hooks.append)
    training.add_hooks(Config(), runner, Namespace(cfg_options=None))
    assert sum(isinstance(hook, ReleaseMemoryHook) for hook in hooks) == 1
