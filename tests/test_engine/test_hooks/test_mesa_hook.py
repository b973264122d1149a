import itertools
from argparse import Namespace

import pytest
import torch
from mmengine.hooks import EMAHook, Hook
from mmengine.runner import Runner
from mmpretrain import models, structures
from torch import nn

from mmlinattn.engine import MESAHook

RUNS = itertools.count()
CLASSES = 5
MIXUP = dict(augments=[dict(type='Mixup', alpha=0.8)])
EMA = dict(type='EMAHook', momentum=0.1)


class Backbone(nn.Module):
    """A backbone whose BatchNorm and dropout differ in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 4, stride=4)
        self.norm = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return (self.drop(self.norm(self.conv(x)).relu()).mean((2, 3)),)


def classifier(**options):
    torch.manual_seed(0)
    head = dict(type='LinearClsHead', num_classes=CLASSES, in_channels=8)
    processor = dict(num_classes=CLASSES, mean=[0.0] * 3, std=[1.0] * 3)
    options = {'head': head, 'data_preprocessor': processor, **options}
    return models.ImageClassifier(Backbone(), **options)


def label(index):
    return structures.DataSample().set_gt_label(index % CLASSES)


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        inputs = torch.randn(3, 16, 20, generator=generator)
        return dict(inputs=inputs, data_samples=label(index))


class Record(Hook):
    def __init__(self):
        self.steps = []

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.steps.append({key: value.item() for key, value in outputs.items()})


def train(folder, hooks, model=None, epochs=4, **options):
    """The weights after a training of three steps per epoch, and the log."""
    record = Record()
    options = {
        'optim_wrapper': dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9)),
        'train_cfg': dict(by_epoch=True, max_epochs=epochs),
        **options,
    }
    runner = Runner(
        model=model or classifier(train_cfg=MIXUP),
        work_dir=str(folder),
        train_dataloader=dict(
            batch_size=4,
            dataset=Images(),
            sampler=dict(type='DefaultSampler', shuffle=False),
            collate_fn=dict(type='default_collate'),
        ),
        custom_hooks=[*hooks, record],
        default_hooks=dict(
            logger=None,
            checkpoint=dict(type='mmlinattn.AtomicCheckpointHook', interval=1),
        ),
        default_scope='mmpretrain',
        experiment_name=f'mesa{next(RUNS)}',
        randomness=dict(seed=0),
        **options,
    )
    runner.train()
    return runner.model.state_dict(), record.steps


def mesa(**options):
    return dict(type='mmlinattn.MESAHook', **options)


def step_of(model, factor):
    """The hook in a step of a training, the runner, and the averaged model."""
    ema, hook = EMAHook(momentum=0.1), MESAHook(factor)
    loop = Namespace(epoch=1, max_epochs=4)
    runner = Namespace(model=model, hooks=[ema, hook], train_loop=loop)
    ema.before_run(runner)
    hook.before_train(runner)
    hook.before_train_iter(runner, 0)
    return hook, runner, ema.ema_model.module


def test_definition():
    """The loss and the gradient of the last layer, in float64, are those of
    -factor sum p' log p, with p' of the averaged model in evaluation mode."""
    factor = 1.5
    model = classifier().double()
    hook, runner, averaged = step_of(model, factor)
    for p in [*averaged.parameters(), averaged.backbone.norm.running_mean]:
        nn.init.normal_(p)

    x = torch.randn(6, 3, 16, 20, dtype=torch.float64)
    seen = []
    model.head.register_forward_hook(lambda m, args, z: seen.append((args[0][-1], z)))
    losses = model(x, [label(i) for i in range(6)], mode='loss')
    assert list(losses) == ['loss', 'loss_mesa']
    sum(losses.values()).backward()

    ((feats, z),) = seen
    maps = averaged.backbone.conv(x)
    mean, var = (
        getattr(averaged.backbone.norm, f'running_{k}') for k in ('mean', 'var')
    )
    maps = (maps - mean[:, None, None]) / (var[:, None, None] + 1e-5).sqrt()
    norm, fc = averaged.backbone.norm, averaged.head.fc
    maps = maps * norm.weight[:, None, None] + norm.bias[:, None, None]
    targets = (maps.relu().mean((2, 3)) @ fc.weight.T + fc.bias).softmax(-1)
    expected = -factor * (targets * z.log_softmax(-1)).sum() / 6
    torch.testing.assert_close(losses['loss_mesa'], expected, rtol=1e-12, atol=0)

    p, y = z.softmax(-1), torch.eye(CLASSES, dtype=torch.float64)[[*range(5), 0]]
    slope = ((p - y) + factor * (p - targets)) / 6
    torch.testing.assert_close(model.head.fc.weight.grad, slope.T @ feats)
    assert all(p.grad is None for p in averaged.parameters())

    hook.after_train_iter(runner, 0)
    assert list(model(x, [label(0)] * 6, mode='loss')) == ['loss']
    hook.after_train(runner)
    assert not model._forward_hooks


@pytest.mark.parametrize('begin, epochs, first', ((0.25, 7, 3), (0, 2, 0)))
def test_begin(tmp_path, begin, epochs, first):
    """The labels' loss of the steps before is that without the hook."""
    _, steps = train(tmp_path, [EMA, mesa(begin=begin)], epochs=epochs)
    assert ['loss_mesa' in x for x in steps] == [i >= first for i in range(3 * epochs)]
    _, plain = train(tmp_path, [EMA], epochs=epochs)
    assert steps[:first] == plain[:first]
    # its batch and its dropout are those without the hook, too
    assert steps[first]['loss'] == plain[first]['loss']
    assert steps[-1]['loss'] != plain[-1]['loss']
    # of a training by iterations, with an iteration
    loop = dict(by_epoch=False, max_iters=6)
    _, steps = train(tmp_path, [mesa(begin=0.5), EMA], train_cfg=loop)
    assert ['loss_mesa' in x for x in steps] == [False] * 3 + [True] * 3


@pytest.mark.parametrize('update_buffers', (False, True))
def test_resumed_equals_unbroken(tmp_path, update_buffers):
    """They are equal even if mixup and dropout draw random numbers."""
    hooks = [dict(EMA, update_buffers=update_buffers), mesa(begin=0.5)]
    expected, steps = train(tmp_path / 'a', hooks)
    for epoch in (1, 3):
        start = dict(load_from=str(tmp_path / f'a/epoch_{epoch}.pth'), resume=True)
        weights, last = train(tmp_path / 'b', hooks, **start)
        assert last == steps[3 * epoch :]
        assert all(torch.equal(weights[key], x) for key, x in expected.items())


def test_no_teacher_and_no_scores(tmp_path):
    with pytest.raises(ValueError, match=r"there is none: add dict\(type='EMAHook'"):
        train(tmp_path, [mesa()])
    with pytest.raises(ValueError, match='head of ImageClassifier is NoneType'):
        train(tmp_path, [EMA, mesa()], classifier(head=None))
