"""tools/dist_train.sh and dist_test.sh without a GPU: processes over gloo."""

import json
import os
import socket
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from loading import ROOT, run_command
from small_configs import CLASSIFIER, RUN, draw_shapes

pytestmark = pytest.mark.full


TOOLS = ROOT / 'tools'
# BatchNorm in evaluation mode: then the size of a process's share does not matter.
CONFIG = """
_base_ = 'base.py'
model = dict(
    backbone=dict(drop_path_rate=0.0, norm_cfg=dict(type='SyncBN'), norm_eval=True),
    head=dict(loss=dict(type='CrossEntropyLoss', loss_weight=1.0)),
)
train_dataloader = dict(batch_size={batch})
test_dataloader = dict(batch_size=2)
test_evaluator = dict(topk=(1, 500))
train_cfg = dict(by_epoch=False, max_iters=2, _delete_=True)
val_cfg = val_dataloader = val_evaluator = param_scheduler = None
default_hooks = dict(
    checkpoint=dict(by_epoch=False, interval=2), logger=dict(interval=1)
)
log_processor = dict(by_epoch=False)
env_cfg = dict(dist_cfg=dict(backend='nccl'))
randomness = dict(seed=0)
custom_imports = dict(imports=['mean_loss'])
custom_hooks = [dict(type='MeanLoss')]
"""
# MMEngine logs the loss of the first process's share of the batch
HOOK = """
from mmengine import dist
from mmengine.hooks import Hook
from mmengine.registry import HOOKS


@HOOKS.register_module()
class MeanLoss(Hook):
    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        losses = dist.all_gather(sum(outputs.values()).detach())
        if dist.is_main_process():
            with open(f'{runner.work_dir}/losses.txt', 'a') as file:
                print(float(sum(losses)) / len(losses), file=file)
"""


@pytest.fixture
def run(tmp_path):
    """Runs a command in a folder with data."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    env = dict(
        os.environ,
        PATH=f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}',
        PORT=str(port),
        CUDA_VISIBLE_DEVICES='',
        OMP_NUM_THREADS='1',
        PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]),
    )

    draw_shapes('imagenet', tmp_path / 'imagenet', 8, 6)
    (tmp_path / 'mean_loss.py').write_text(HOOK)
    base = (RUN + CLASSIFIER).replace('WORLD', '.')
    (tmp_path / 'base.py').write_text(base)
    for name, batch in (('one', 4), ('two', 2), ('four', 1)):
        (tmp_path / f'{name}.py').write_text(CONFIG.replace('{batch}', str(batch)))
    return partial(run_command, cwd=tmp_path, env=env)


def losses_of(folder):
    """Losses that MeanLoss wrote in a training."""
    return list(map(float, (folder / 'losses.txt').read_text().split()))


def assert_equal(one, other):
    """Two trainings have the same losses and last weights."""
    assert len(losses_of(one)) == 2
    assert losses_of(other) == pytest.approx(losses_of(one), rel=1e-4)
    expected, distributed = (
        torch.load(folder / 'iter_2.pth', weights_only=False)['state_dict']
        for folder in (one, other)
    )
    assert expected.keys() == distributed.keys()
    for key, value in expected.items():
        torch.testing.assert_close(distributed[key], value, rtol=1e-4, atol=1e-6)


def test_processes_without_gpus(run, tmp_path):
    run(sys.executable, TOOLS / 'train.py', 'one.py')
    for name, count in (('two', 2), ('four', 4)):
        run(TOOLS / 'dist_train.sh', f'{name}.py', count)
        assert_equal(tmp_path / 'work_dirs/one', tmp_path / 'work_dirs' / name)

    checkpoint = 'work_dirs/two/iter_2.pth'
    run(sys.executable, TOOLS / 'test.py', 'one.py', checkpoint, '--work-dir', 'test1')
    run(TOOLS / 'dist_test.sh', 'two.py', checkpoint, 2, '--work-dir', 'test2')
    results = []
    for folder in ('test1', 'test2'):
        (path,) = (tmp_path / folder).glob('*/*.json')
        metrics = json.loads(path.read_text())
        results.append({k: v for k, v in metrics.items() if k.startswith('accuracy')})
    assert results[0] == results[1] and len(results[0]) == 2


def test_learning_from_the_averaged_model(run, tmp_path):
    """After two steps, it differs from the model that trains."""
    for name in ('one', 'two'):
        path = tmp_path / f'{name}.py'
        text = path.read_text().replace('max_iters=2', 'max_iters=4')
        hook = "dict(type='mmlinattn.MESAHook', factor=9, begin=0)"
        path.write_text(f"{text}custom_hooks += [dict(type='EMAHook'), {hook}]\n")
    run(sys.executable, TOOLS / 'train.py', 'one.py')
    run(TOOLS / 'dist_train.sh', 'two.py', 2)
    one, two = (losses_of(tmp_path / 'work_dirs' / name) for name in ('one', 'two'))
    assert min(one) > 45  # log 1000 = 6.9, times 1 + 9
    assert two == pytest.approx(one, rel=1e-4)


# One process of the same batch is compared with; gathered weights are saved whole.
SHARDED = """
_base_ = 'two.py'
runner_type = 'FlexibleRunner'
custom_imports = dict(imports=['mean_loss', 'on_cpus'])
strategy = dict(
    type='FSDPStrategy',
    state_dict_cfg='full',
    model_wrapper=dict(type='FullyShardedOnCPU', use_orig_params=True),
)
"""


@pytest.mark.skipif(
    torch.__version__.startswith('2.1.'), reason="its gloo can't gather shards"
)
def test_sharded_parameters(run, tmp_path):
    """MMEngine's FlexibleRunner with FSDP."""
    (tmp_path / 'sharded.py').write_text(SHARDED)
    run(sys.executable, TOOLS / 'train.py', 'one.py')
    run(TOOLS / 'dist_train.sh', 'sharded.py', 2)
    assert_equal(tmp_path / 'work_dirs/one', tmp_path / 'work_dirs/sharded')
