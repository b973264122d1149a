"""Lines on schedules that do not fit the length of a training."""

import math
import re

import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner
from mmengine.runner._flexible_runner import FlexibleRunner
from torch import nn

from mmlinattn.runs.schedules import ScheduleReport

pytestmark = pytest.mark.openmmlab

WARM = dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=2)
STEPS = dict(type='MultiStepLR', by_epoch=True, gamma=0.1)
COSINE = dict(type='CosineAnnealingLR', by_epoch=False)


class Model(nn.Linear):
    """A model of MMEngine's runner that notes its learning rates."""

    def train_step(self, data, optim_wrapper):
        self.rates.append(optim_wrapper.param_groups[0]['lr'])
        optim_wrapper.update_params(self(torch.ones(1, 2)).sum())
        return {}


@pytest.fixture
def train(tmp_path):
    """Trains a tiny model of four steps an epoch, and returns the lines and the rates
    that it had."""

    def call(schedule, kind=Runner, photos=4, batch=1, **length):
        lines, model = [], Model(2, 1)
        model.rates = []
        data = dict(batch_size=batch, dataset=[0] * photos, num_workers=0)
        by_epoch = 'max_epochs' in length
        sampler = 'DefaultSampler' if by_epoch else 'InfiniteSampler'
        runner = kind(
            model=model,
            work_dir=str(tmp_path),
            train_dataloader=dict(data, sampler=dict(type=sampler, shuffle=False)),
            train_cfg=dict(by_epoch=by_epoch, **length),
            optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
            param_scheduler=schedule,
            default_hooks=dict(logger=None, checkpoint=None),
            experiment_name=f'{tmp_path.name}{len(lines)}',
            cfg=Config({}),
            log_level='ERROR',
        )
        runner.register_hook(
            ScheduleReport(lines.append, lambda text: lines.append(f'said: {text}'))
        )
        runner.train()
        return lines, model.rates

    return call


# schedules that fit, and lengths
RIGHT = dict(
    follows=([WARM, COSINE], dict(max_epochs=5)),
    warm_up_alone=([WARM], dict(max_epochs=5)),
    steps=([WARM, dict(STEPS, milestones=[3, 4], end=5)], dict(max_epochs=5)),
    steps_without_an_end=([dict(STEPS, milestones=[3])], dict(max_epochs=5)),
    cosine_behind_a_warm_up=(
        [dict(WARM, end=4), dict(COSINE, begin=4, T_max=16, end=20)],
        dict(max_epochs=5),
    ),
    constant_at_the_end=(
        [
            dict(COSINE, by_epoch=True, T_max=4, end=4),
            dict(type='ConstantLR', by_epoch=True, factor=1, begin=4, end=5),
        ],
        dict(max_epochs=5),
    ),
    converted=(
        [dict(COSINE, by_epoch=True, convert_to_iter_based=True)],
        dict(max_epochs=5),
    ),
    iterations=([dict(type='PolyLR', by_epoch=False, end=12)], dict(max_iters=12)),
    plateau=(
        [dict(type='ReduceOnPlateauLR', monitor='loss', by_epoch=True)],
        dict(max_epochs=2),
    ),
)


@pytest.mark.parametrize('schedule, length', RIGHT.values(), ids=RIGHT)
@pytest.mark.parametrize('kind', [Runner, FlexibleRunner])
def test_schedules_that_fit(train, schedule, length, kind):
    lines, rates = train(schedule, kind, **length)
    assert [line[:6] for line in lines] == ['said: ']
    if 'at the end' in lines[0]:
        said = float(re.search(r', (\S+) at the end', lines[0])[1])
        assert math.isclose(said, rates[-1], rel_tol=0.01, abs_tol=1e-9)


# those that do not, lengths, and words of the line
WRONG = dict(
    longer=(
        [dict(COSINE, end=8)],
        dict(max_epochs=5),
        ['20 steps', r'ends at step 8, and 12 steps \(60 %\)', 'of the highest'],
    ),
    longer_in_epochs=(
        [dict(STEPS, milestones=[1], end=2)],
        dict(max_epochs=4),
        [r'ends at step 8, and 8 steps \(50 %\)', 'rate, 0.01, 10 % of the highest'],
    ),
    shorter=(
        [dict(COSINE, end=40)],
        dict(max_epochs=5),
        ['20 steps', 'it is for 40 steps', '53'],
    ),
    shorter_by_its_period=(
        [dict(COSINE, by_epoch=True, T_max=20)],
        dict(max_epochs=5),
        ['it is for 80 steps'],
    ),
    larger_batch=(
        [dict(COSINE, end=20)],
        dict(max_epochs=5, batch=2),
        ['10 steps', 'it is for 20 steps'],
    ),
    repeated=(
        [dict(COSINE, end=20)],
        dict(max_epochs=5, photos=12),
        ['60 steps', r'40 steps \(66.7 %\)'],
    ),
    warm_up=(
        [dict(WARM, end=500)],
        dict(max_epochs=12),
        ['48 steps', 'its warm-up takes 100 %', 'reach a rate of 0.0185 of 0.1'],
    ),
    late_steps=(
        [dict(STEPS, milestones=[8, 11])],
        dict(max_epochs=5),
        ['would fall at step 32 first'],
    ),
    iterations=(
        [dict(type='PolyLR', by_epoch=False, end=100)],
        dict(max_iters=12),
        ['it is for 100 steps'],
    ),
)


@pytest.mark.parametrize('schedule, length, words', WRONG.values(), ids=WRONG)
def test_schedules_that_do_not_fit(train, schedule, length, words):
    (line,), rates = train(schedule, **length)
    for word in words:
        assert re.search(word, line), line
    said = re.search(r'rate, (\S+), (\S+) % of the highest', line)
    if said:  # as it came
        assert math.isclose(float(said[1]), rates[-1], rel_tol=0.01)
        expected = 100 * rates[-1] / max(rates)
        assert math.isclose(float(said[2]), expected, rel_tol=0.01)
