"""Processes that run without GPUs: how they join, and which wrapper a model gets."""

from argparse import Namespace

import pytest
from mmengine.config import Config
from mmengine.registry import MODEL_WRAPPERS

from mmlinattn.utils import distributed

pytestmark = pytest.mark.modern

OURS = 'mmlinattn.AnyDeviceDistributedDataParallel'
SHARDED = 'mmlinattn.AnyDeviceFullyShardedDataParallel'


@pytest.fixture
def joined(monkeypatch):
    """A machine without accelerators, and the groups that were joined there."""
    joined = []
    monkeypatch.setattr(distributed, 'get_device', lambda: 'cpu')
    fake = Namespace(
        is_initialized=lambda: bool(joined),
        init_process_group=lambda backend, **options: joined.append((backend, options)),
        get_rank=lambda: 0,
        get_world_size=lambda: 3,
    )
    monkeypatch.setattr(distributed, 'dist', fake)
    for name in distributed._LAUNCHED:
        monkeypatch.setenv(name, '0')
    return joined


@pytest.fixture
def prepare(joined):
    """Prepares a config as in a process that torch's launcher started."""

    def call(**cfg):
        cfg = Config(dict(dict(launcher='pytorch'), **cfg))
        distributed.run_on_cpus(cfg)
        return cfg

    return call


def test_processes_join_over_gloo(prepare, joined, capsys):
    prepare(env_cfg=dict(dist_cfg=dict(backend='nccl', timeout=60)))
    assert '3 processes run on CPUs, over gloo' in capsys.readouterr().out
    prepare()
    ((backend, options),) = joined
    assert backend == 'gloo' and options['timeout'].total_seconds() == 60


def test_wrapper_of_a_runner(prepare):
    cfg = prepare(find_unused_parameters=True)
    assert cfg.model_wrapper_cfg == dict(
        type=OURS, broadcast_buffers=False, find_unused_parameters=True
    )
    own = dict(type='MMDistributedDataParallel', broadcast_buffers=True)
    assert prepare(model_wrapper_cfg=own).model_wrapper_cfg.broadcast_buffers
    other = dict(type='Another')
    assert prepare(model_wrapper_cfg=other).model_wrapper_cfg == other
    assert MODEL_WRAPPERS.get(OURS).__name__ == OURS.split('.')[1]


def test_wrapper_of_a_flexible_runner(prepare, monkeypatch):
    monkeypatch.setattr(distributed, '_GLOO_GATHERS', True)
    flexible = dict(runner_type='FlexibleRunner')
    assert prepare(**flexible).strategy.model_wrapper.type == OURS
    options = dict(use_orig_params=True)
    strategy = dict(type='FSDPStrategy', model_wrapper=options)
    cfg = prepare(**flexible, strategy=strategy)
    assert cfg.strategy.model_wrapper == dict(type=SHARDED, **options)
    assert 'model_wrapper_cfg' not in cfg
    assert MODEL_WRAPPERS.get(SHARDED).__name__ == SHARDED.split('.')[1]


@pytest.mark.parametrize(
    'strategy, message',
    [
        ('FSDPStrategy', 'or torch 2.2 or newer'),
        ('DeepSpeedStrategy', 'only DDPStrategy and FSDPStrategy work'),
    ],
)
def test_strategies_that_need_a_gpu(prepare, monkeypatch, strategy, message):
    monkeypatch.setattr(distributed, '_GLOO_GATHERS', False)
    with pytest.raises(ValueError, match=message):
        prepare(runner_type='FlexibleRunner', strategy=dict(type=strategy))


def test_nothing_changes_with_one_process_or_a_gpu(prepare, joined, monkeypatch):
    assert prepare(launcher='none').to_dict() == dict(launcher='none')
    monkeypatch.setattr(distributed, 'get_device', lambda: 'cuda')
    assert prepare().to_dict() == dict(launcher='pytorch') and not joined


def test_launchers_that_can_not_work(prepare, monkeypatch):
    with pytest.raises(ValueError, match="launcher='slurm' needs a GPU"):
        prepare(launcher='slurm')
    monkeypatch.delenv('RANK')
    with pytest.raises(ValueError, match='but RANK are not set'):
        prepare()
