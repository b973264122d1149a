"""Lines on what a resumed training keeps, and what of its config has no effect."""

import re

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import OptimWrapper
from mmengine.optim.scheduler import CosineAnnealingLR, LinearLR, MultiStepLR
from mmengine.runner import Runner
from mmengine.runner._flexible_runner import FlexibleRunner
from torch import nn

from mmlinattn.runs.resume_report import ResumeReport

pytestmark = pytest.mark.openmmlab


class Model(nn.Linear):
    """A model of MMEngine's runner, without a step."""

    def train_step(self, data, optim_wrapper):
        optim_wrapper.update_params(self(torch.ones(1, 2)).sum())
        return {}


def schedule(name, by_epoch=False):
    kinds = dict(
        cosine=dict(type=CosineAnnealingLR, T_max=8, end=8, by_epoch=by_epoch),
        rising=dict(type=CosineAnnealingLR, T_max=8, by_epoch=by_epoch),
        warm=dict(type=LinearLR, start_factor=0.1, end=2, by_epoch=by_epoch),
        steps=dict(type=MultiStepLR, milestones=[3], by_epoch=by_epoch),
        later=dict(type=MultiStepLR, milestones=[6], by_epoch=by_epoch),
    )
    return [kinds[name]]


@pytest.fixture
def train(tmp_path):
    """Trains a tiny model, and returns the lines of the report."""
    runs = []

    def call(
        epochs,
        kind='cosine',
        rate=0.1,
        batch=1,
        by_epoch=False,
        base=0,
        runner_type=Runner,
    ):
        lines = []
        data = dict(batch_size=batch, dataset=[0] * 4, sampler=None, num_workers=0)
        data.update(sampler=dict(type='DefaultSampler', shuffle=False))
        resumed = dict(resume=True, load_from=str(tmp_path / 'epoch_1.pth'))
        model = Model(2, 1)
        runner = runner_type(
            model=model,
            work_dir=str(tmp_path),
            train_dataloader=data,
            train_cfg=dict(by_epoch=True, max_epochs=epochs),
            optim_wrapper=dict(
                type=OptimWrapper, optimizer=dict(type='SGD', lr=rate, momentum=0.9)
            ),
            param_scheduler=schedule(kind, by_epoch),
            auto_scale_lr=dict(enable=bool(base), base_batch_size=base or 1),
            default_hooks=dict(
                logger=None, checkpoint=dict(type='CheckpointHook', interval=1)
            ),
            experiment_name=f'{tmp_path.name}{len(runs)}',
            cfg=Config(resumed),
            log_level='ERROR',
            **(resumed if runs else {}),
        )
        runs.append(runner)
        runner.register_hook(
            ResumeReport(lines.append, lambda x: lines.append(f'warning: {x}'))
        )
        runner.train()
        return lines

    return call


NEW = 'For a new schedule, give --cfg-options load_from='


@pytest.mark.parametrize(
    'first, second, expected',
    [
        (dict(epochs=2), {}, ['iterations 5 to 8, .*schedule ends at 8']),
        (dict(epochs=2, kind='warm'), {}, ['iterations 5 to 8, from a rate of 0.1$']),
        (dict(epochs=2, kind='rising'), {}, ['schedule ends at 8']),
        (dict(epochs=8, kind='cosine', by_epoch=True), {}, ['schedule ends at 32']),
        (dict(epochs=2), dict(rate=0.5), ['', f'rate of 0.5 .*was 0.1.*{NEW}']),
        (dict(epochs=2), dict(base=4), ['', 'rate of 0.025 .*was 0.1']),
        (
            dict(epochs=2),
            dict(epochs=3),
            ['', 'ends at 8: 4 iterations are at its last'],
        ),
        (dict(epochs=1), dict(epochs=1), ['warning: .*nothing is left.*max_epochs']),
        (
            dict(epochs=2),
            dict(batch=2),
            ['5 to 6', 'has 2 iterations, and had 4 before; the run ends at 6, before'],
        ),
        (
            dict(epochs=2, kind='steps'),
            dict(kind='later'),
            ['', 'MultiStepLR with mil'],
        ),
        (
            dict(epochs=2, runner_type=FlexibleRunner),
            dict(rate=0.5),
            ['5 to 8', 'rate of 0.5 .*was 0.1'],
        ),
        (dict(epochs=2, kind='steps'), {}, ['iterations 5 to 8']),
    ],
)
def test_what_a_resumed_training_says(train, first, second, expected):
    assert train(**first) == []
    lines = train(**{**first, **second})
    assert len(lines) == len(expected), lines
    for line, words in zip(lines, expected):
        assert re.search(words, line), line


def test_a_schedule_that_has_ended(train, tmp_path):
    train(2)
    (tmp_path / 'epoch_2.pth').replace(tmp_path / 'epoch_1.pth')
    said, warned = train(3)
    assert '9 to 12' in said and 'has ended at 8: all iterations' in warned
