import itertools
from argparse import Namespace

import pytest
import torch
from mmengine.hooks import EMAHook, Hook
from mmengine.runner import Runner
from torch import nn

from mmlinattn.engine import MESAHook

pytestmark = pytest.mark.modern

models = pytest.importorskip('mmpretrain.models')
structures = pytest.importorskip('mmpretrain.structures')

RUNS = itertools.count()
WRAPPER = dict(optimizer=dict(type='SGD', lr=0.1))
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


class Doubled(nn.Module):
    """A model that differs in training, without randomness."""

    def forward(self, x):
        return 2 * x if self.training else x


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


def train(folder, hooks, model=None, batch_size=4, epochs=4, **options):
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
            batch_size=batch_size,
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


def test_half_precision():
    """Scores are rounded, and nothing after them."""
    model = classifier().bfloat16()
    step_of(model, 1.0)
    model.backbone.drop.p = 0
    model.backbone.norm.eval()
    x = torch.randn(6, 3, 16, 20, dtype=torch.bfloat16)
    found = model(x, [label(i) for i in range(6)], mode='loss')['loss_mesa']
    z = model(x).double()
    expected = -(z.softmax(-1) * z.log_softmax(-1)).sum() / 6
    torch.testing.assert_close(found, expected.float(), rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    'begin, epochs, first', ((0.25, 4, 3), (0.25, 7, 3), (0, 2, 0), (0.5, 3, 3))
)
def test_begins_with_an_epoch(tmp_path, begin, epochs, first):
    """The labels' loss of the steps before is that without the hook."""
    _, steps = train(tmp_path, [EMA, mesa(begin=begin)], epochs=epochs)
    assert ['loss_mesa' in x for x in steps] == [i >= first for i in range(3 * epochs)]
    _, plain = train(tmp_path, [EMA], epochs=epochs)
    assert steps[:first] == plain[:first]
    # its batch and its dropout are those without the hook, too
    assert steps[first]['loss'] == plain[first]['loss']
    assert steps[-1]['loss'] != plain[-1]['loss']


def test_begins_with_an_iteration(tmp_path):
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
        found, last = train(tmp_path / 'b', hooks, **start)
        assert last == steps[3 * epoch :]
        assert all(torch.equal(found[key], x) for key, x in expected.items())


def test_accumulated_gradients(tmp_path):
    """Two halves of a batch move the weights as the batch does."""
    states = []
    for batch_size, counts in ((12, 1), (6, 2)):
        model = classifier()
        model.backbone.norm, model.backbone.drop = nn.Identity(), Doubled()
        wrapper = dict(WRAPPER, accumulative_counts=counts)
        hooks = [EMA, mesa(begin=0)]
        start = [x.clone() for x in model.state_dict().values()]
        state, _ = train(
            tmp_path, hooks, model, batch_size, epochs=1, optim_wrapper=wrapper
        )
        states.append([x - y for x, y in zip(state.values(), start)])
    for one, two in zip(*states):
        torch.testing.assert_close(two, one, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    'options, message',
    (
        (dict(factor=0), 'factor must be positive, got 0'),
        (dict(factor=float('nan')), 'factor must be positive, got nan'),
        (dict(begin=1), 'begin must be at least 0 and below 1, got 1'),
    ),
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        MESAHook(**options)


def test_without_an_averaged_model(tmp_path):
    with pytest.raises(ValueError, match=r"there is none: add dict\(type='EMAHook'"):
        train(tmp_path, [mesa()])


@pytest.mark.parametrize(
    'head, name',
    (
        (None, 'NoneType'),
        (
            dict(type='MultiLabelLinearClsHead', num_classes=5, in_channels=8),
            'MultiLabelLinearClsHead',
        ),
    ),
)
def test_without_a_classifier_head(tmp_path, head, name):
    with pytest.raises(ValueError, match=f'head of ImageClassifier is {name}'):
        train(tmp_path, [EMA, mesa()], classifier(head=head))


def test_a_head_with_two_scores(tmp_path):
    head = dict(type='ConformerHead', num_classes=5, in_channels=[4, 4])
    model = classifier(head=head)
    model.backbone.register_forward_hook(lambda m, x, out: (out[0].split(4, 1),))
    with pytest.raises(ValueError, match='ConformerHead returned tuple'):
        train(tmp_path, [EMA, mesa(begin=0)], model)
