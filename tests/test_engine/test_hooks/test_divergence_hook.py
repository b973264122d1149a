"""Trainings that diverge at a chosen iteration, with a model of one number."""

import itertools
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config, ConfigDict
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn

from mmlinattn.engine import DivergenceError, DivergenceHook

RUNS = itertools.count()


class Numbers(torch.utils.data.Dataset):
    broken = ()

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index in self.broken:
            raise IndexError('a mistake in a data set')
        return dict(inputs=torch.ones(1))


class Model(BaseModel):
    """``fault`` takes the model, the loss and the number of the iteration from 1, and
    returns the loss."""

    def __init__(self, fault):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.norm = nn.BatchNorm1d(1, affine=False)
        self.never = nn.Parameter(torch.tensor(-torch.inf), requires_grad=False)
        self.count, self.fault = 0, fault

    def forward(self, inputs, mode='tensor'):
        self.count += 1
        loss = (self.weight * torch.stack(inputs)).square().mean()
        return dict(loss=self.fault(self, loss, self.count))


def loss_from(first, value=torch.nan):
    return lambda model, loss, i: loss * value if i >= first else loss


def weight_at(number, value):
    def fault(model, loss, i):
        if i == number:
            model.weight.data.fill_(value)
        return loss.detach().nan_to_num(1, 1) + 0 * model.weight.sum().nan_to_num()

    return fault


def refusal(model, loss, i):
    """A solver refuses what is not finite."""
    if i == 6:
        model.weight.data.fill_(1e9)
        raise ValueError('matrix contains invalid numeric entries')
    return loss


def mistake(model, loss, i):
    raise ValueError('shapes differ')


def large_pixels(model, loss, i):
    """Statistics of a norm are as large as the squares of 16 bits."""
    model.norm.running_var.fill_(1e9)
    return loss


def diverged(model, loss, i):
    return loss * torch.nan


def one_batch(model, loss, i):
    """As in mixed precision: infinite losses, and weights that stay finite."""
    return loss + torch.inf if i in (2, 5, 6) else loss


@pytest.fixture
def train(tmp_path):
    def call(fault, by_epoch):
        length = dict(max_epochs=3) if by_epoch else dict(max_iters=12)
        step = dict(by_epoch=by_epoch, interval=1 if by_epoch else 4)
        kind = 'DefaultSampler' if by_epoch else 'InfiniteSampler'
        runner = Runner(
            Model(fault),
            work_dir=str(tmp_path),
            train_dataloader=dict(
                dataset=Numbers(), num_workers=0, sampler=dict(type=kind, shuffle=False)
            ),
            train_cfg=dict(by_epoch=by_epoch, **length),
            optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.01)),
            # the one that removes the old checkpoint before it writes
            default_hooks=dict(
                checkpoint=dict(type='CheckpointHook', max_keep_ckpts=1, **step)
            ),
            log_level='ERROR',
            default_scope=None,
            experiment_name=f'divergence{next(RUNS)}',
            cfg=Config(dict(train_cfg={}, optim_wrapper=dict(optimizer=dict(lr=0.01)))),
        )
        hook = DivergenceHook()
        runner.register_hook(hook)
        with hook.watch(runner):
            runner.train()

    return call


@pytest.mark.parametrize('by_epoch', [True, False])
@pytest.mark.parametrize(
    'fault, since',
    [
        (loss_from(6), 6),
        (loss_from(8), 8),  # the last one before a checkpoint
        (weight_at(7, torch.nan), None),
        (weight_at(8, torch.inf), None),
        (refusal, None),
    ],
)
def test_it_stops_and_keeps_the_good_checkpoint(
    train, tmp_path, by_epoch, fault, since
):
    with pytest.raises(DivergenceError) as caught:
        train(fault, by_epoch)
    message = str(caught.value)
    name = 'epoch_1.pth' if by_epoch else 'iter_4.pth'
    assert f'finite checkpoint is {tmp_path / name}' in message
    assert '0.01 now' in message
    assert 'clip_grad' in message and 'warm-up' in message
    if since:
        assert f'since iteration {since}: ' in message
    assert [x.name for x in tmp_path.glob('*.pth')] == [name]
    weights = torch.load(tmp_path / name, weights_only=False)['state_dict']
    assert weights['weight'].isfinite().all()


def test_other_trainings_end_as_they_did(train, tmp_path):
    train(one_batch, True)
    assert (tmp_path / 'epoch_3.pth').is_file()
    with pytest.raises(ValueError, match='shapes differ'):
        train(mistake, True)


@pytest.mark.parametrize('fault', [large_pixels, diverged])
def test_mistakes_of_data_sets(train, monkeypatch, fault):
    """They are no divergence, whatever the model is like by then."""
    monkeypatch.setattr(Numbers, 'broken', (1,))
    with pytest.raises(IndexError, match='a mistake in a data set'):
        train(fault, True)


def test_mistakes_of_models_with_large_statistics(train):
    def both(model, loss, i):
        large_pixels(model, loss, i)
        return mistake(model, loss, i)

    with pytest.raises(ValueError, match='shapes differ'):
        train(both, True)


def test_models_that_are_not_built_yet():
    """FlexibleRunner has a config until a training begins."""
    runner = SimpleNamespace(model=ConfigDict(type='X'))
    with pytest.raises(RuntimeError, match='peer'), DivergenceHook().watch(runner):
        raise RuntimeError('closed by peer')


def test_losses_that_stay_infinite(monkeypatch, train):
    monkeypatch.setattr('mmlinattn.engine.hooks.divergence_hook.LIMIT', 5)
    with pytest.raises(DivergenceError, match='since iteration 1: 5 losses'):
        train(lambda model, loss, i: loss + torch.inf, True)
