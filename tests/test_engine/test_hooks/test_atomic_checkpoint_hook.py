"""Trainings that are killed and resumed, with a model of a few numbers in one process;
test_killed.py has real ones."""

import itertools
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.evaluator import BaseMetric, Evaluator
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn

from mmlinattn.engine import AtomicCheckpointHook

RUNS = itertools.count()


class Noise(torch.utils.data.Dataset):
    """Images that are augmented with all generators that transforms use."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        noise = random.random() + np.random.rand() + torch.rand(()).item()  # noqa: NPY002
        return dict(inputs=torch.full((4,), index + noise))


class Model(BaseModel):
    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 1))

    def forward(self, inputs, mode='tensor'):
        out = self.layer(torch.stack(inputs)).square().mean()
        return dict(loss=out) if mode == 'loss' else [out.detach()]


class Score(BaseMetric):
    """Better each time, and drawn by the way."""

    calls = itertools.count()

    def process(self, data_batch, data_samples):
        self.results.append(torch.rand(()).item())

    def compute_metrics(self, results):
        return dict(score=next(self.calls), worse=-next(self.calls))


class Killed(Exception):
    pass


class Kill(Hook):
    """Ends the training in an iteration, as if the process was killed."""

    priority = 'LOWEST'

    def __init__(self, iteration):
        self.iteration = iteration

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        if runner.iter + 1 == self.iteration:
            raise Killed


@pytest.fixture
def make_runner(tmp_path):
    """Builds a runner, for epochs of three iterations or for iterations."""

    def make(name, by_epoch, hooks=(), resume=False, **options):
        torch.manual_seed(0)
        kind = 'DefaultSampler' if by_epoch else 'InfiniteSampler'
        loading = dict(batch_size=2, num_workers=0, dataset=Noise())
        length = dict(max_epochs=4) if by_epoch else dict(max_iters=12)
        step = dict(by_epoch=by_epoch, interval=1 if by_epoch else 3)
        hook = dict(type='mmlinattn.AtomicCheckpointHook', **step, **options)
        return Runner(
            Model(),
            work_dir=str(tmp_path / name),
            train_dataloader=dict(loading, sampler=dict(type=kind, shuffle=True)),
            val_dataloader=dict(loading, sampler=dict(type='DefaultSampler')),
            train_cfg=dict(by_epoch=by_epoch, val_interval=step['interval'], **length),
            val_cfg=dict(),
            val_evaluator=Evaluator(Score()),
            optim_wrapper=dict(optimizer=dict(type='Adam', lr=0.01)),
            default_hooks=dict(checkpoint=hook),
            custom_hooks=list(hooks),
            resume=resume,
            randomness=dict(seed=0),
            log_level='WARNING',
            default_scope=None,
            experiment_name=f'run{next(RUNS)}',
            cfg=Config(dict(train_cfg=dict())),
        )

    return make


def last(folder):
    return torch.load((folder / 'last_checkpoint').read_text(), weights_only=False)


def assert_equal(one, other):
    for key, value in one['state_dict'].items():
        assert torch.equal(other['state_dict'][key], value), key
    for a, b in zip(one['random_states'], other['random_states']):
        assert a['python'] == b['python'] and torch.equal(a['torch'], b['torch'])


@pytest.mark.parametrize('by_epoch', [True, False])
@pytest.mark.parametrize(
    'iteration, options', [(4, {}), (9, dict(save_best='score', rule='greater'))]
)
def test_killed_training_equals_undisturbed_one(
    make_runner, tmp_path, by_epoch, iteration, options
):
    make_runner('whole', by_epoch, **options).train()
    with pytest.raises(Killed):
        make_runner('killed', by_epoch, [Kill(iteration)], **options).train()
    random.seed(9), np.random.seed(9), torch.manual_seed(9)  # noqa: NPY002
    make_runner('killed', by_epoch, resume=True, **options).train()
    assert_equal(last(tmp_path / 'whole'), last(tmp_path / 'killed'))


def test_other_number_of_processes(make_runner, capsys):
    hook, runner = AtomicCheckpointHook(), make_runner('run', True, resume=True)
    hook.after_load_checkpoint(runner, dict(random_states=[{}, {}]))
    assert 'random state of 2 processes, not of 1' in capsys.readouterr().out
    assert hook._loaded is None


class Full(OSError):
    """The disk is full, or the process is gone."""


@pytest.fixture
def broken_disk(monkeypatch):
    """Lets some of the files that are written end in the middle, from now on."""

    write = Path.write_bytes

    def break_(matches):
        def write_half(self, data):
            if matches(self.name):
                write(self, data[: len(data) // 2])
                raise Full
            return write(self, data)

        monkeypatch.setattr(Path, 'write_bytes', write_half)

    return break_


@pytest.mark.parametrize('keep', [-1, 1, 2])
def test_interrupted_write_leaves_whole_ones(make_runner, tmp_path, broken_disk, keep):
    broken_disk(lambda name: 'epoch_3' in name)
    with pytest.raises(Full):
        make_runner('run', True, max_keep_ckpts=keep).train()
    folder = tmp_path / 'run'
    names = {path.name for path in folder.glob('epoch_*.pth')}
    assert names == {'epoch_1.pth', 'epoch_2.pth'} - {'epoch_1.pth' * (keep == 1)}
    assert (folder / 'last_checkpoint').read_text().endswith('epoch_2.pth')
    assert last(folder)['meta']['epoch'] == 2
    broken_disk(lambda name: False)
    make_runner('run', True, resume=True, max_keep_ckpts=keep).train()
    names = sorted(path.name for path in folder.glob('epoch_*.pth'))
    assert names == [f'epoch_{i}.pth' for i in range(5 - (keep if keep > 0 else 4), 5)]


@pytest.mark.parametrize('indicators', ['score', ['score', 'worse']])
def test_best_one_gives_way_after_the_new_one(
    make_runner, tmp_path, broken_disk, indicators
):
    options = dict(save_best=indicators, rule='greater')
    make_runner('whole', True, **options).train()
    worse = ['best_worse_epoch_1.pth'] if len(indicators) == 2 else []
    names = {path.name for path in (tmp_path / 'whole').glob('best_*')}
    assert names == {'best_score_epoch_4.pth', *worse}
    broken_disk(lambda name: 'best_score_epoch_3' in name)
    with pytest.raises(Full):
        make_runner('run', True, **options).train()
    names = {path.name for path in (tmp_path / 'run').glob('best_*')}
    assert names == {'best_score_epoch_2.pth', *worse}


def test_drafts_of_a_killed_training_are_removed(make_runner, tmp_path):
    draft = tmp_path / 'run' / '.epoch_9.pth.01234567.part'
    draft.parent.mkdir()
    draft.touch()
    make_runner('run', True).train()
    assert not draft.exists()
