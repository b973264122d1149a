"""tools/dist_train.sh and dist_test.sh where no GPU is: two processes over gloo."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = [pytest.mark.modern, pytest.mark.full]

TOOLS = Path(__file__).resolve().parents[2] / 'tools'
# BatchNorm in evaluation mode: then the size of a process's share does not matter.
CONFIG = """
default_scope = 'mmpretrain'
model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='mmlinattn.SOFTPlusPlus',
        arch=dict(
            embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_heads=[1, 2, 3, 4]
        ),
        drop_path_rate=0.0,
        norm_cfg=dict(type='SyncBN'),
        norm_eval=True,
    ),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(
        type='LinearClsHead',
        num_classes=1000,
        in_channels=32,
        loss=dict(type='CrossEntropyLoss', loss_weight=1.0),
    ),
)
data_preprocessor = dict(num_classes=1000, mean=[120.0] * 3, std=[60.0] * 3)
pipeline = [dict(type='LoadImageFromFile'), dict(type='PackInputs')]
dataset = dict(type='ImageNet', data_root='imagenet', pipeline=pipeline)
train_dataloader = dict(
    batch_size={batch},
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(split='train', **dataset),
)
test_dataloader = dict(
    batch_size=2,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(split='val', **dataset),
)
test_evaluator = dict(type='Accuracy', topk=(1, 500))
optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.1))
train_cfg = dict(by_epoch=False, max_iters=2)
test_cfg = dict()
default_hooks = dict(
    checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=2),
    logger=dict(type='LoggerHook', interval=1),
)
log_processor = dict(by_epoch=False)
env_cfg = dict(dist_cfg=dict(backend='nccl'))
randomness = dict(seed=0)
"""


@pytest.fixture
def run(tmp_path):
    """Runs a command in a folder with data, and returns what it printed."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    env = dict(
        os.environ,
        PATH=f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}',
        PORT=str(port),
        CUDA_VISIBLE_DEVICES='',
        OMP_NUM_THREADS='1',
    )

    def call(*command, fails=False):
        done = subprocess.run(
            list(map(str, command)),
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
        )
        assert (done.returncode != 0) == fails, done.stderr[-3000:]
        return done.stderr if fails else done.stdout

    shapes = TOOLS / 'dataset_converters' / 'make_shapes.py'
    sizes = '--num-train', 8, '--num-val', 6, '--size', 48, 48
    call(sys.executable, shapes, '--layout', 'imagenet', '--out', 'imagenet', *sizes)
    for name, batch in (('one', 4), ('two', 2)):
        (tmp_path / f'{name}.py').write_text(CONFIG.replace('{batch}', str(batch)))
    return call


def test_two_processes_without_gpus(run, tmp_path):
    pytest.importorskip('mmpretrain')
    run(sys.executable, TOOLS / 'train.py', 'one.py')
    out = run(TOOLS / 'dist_train.sh', 'two.py', 2)
    assert 'No GPU: 2 processes run on CPUs, over gloo' in out
    one, two = (
        torch.load(tmp_path / f'work_dirs/{name}/iter_2.pth', weights_only=False)
        for name in ('one', 'two')
    )
    assert one['state_dict'].keys() == two['state_dict'].keys()
    for key, value in one['state_dict'].items():
        torch.testing.assert_close(two['state_dict'][key], value, rtol=1e-4, atol=1e-6)

    checkpoint = 'work_dirs/two/iter_2.pth'
    run(sys.executable, TOOLS / 'test.py', 'one.py', checkpoint, '--work-dir', 'test1')
    run(TOOLS / 'dist_test.sh', 'two.py', checkpoint, 2, '--work-dir', 'test2')
    results = []
    for folder in ('test1', 'test2'):
        (path,) = (tmp_path / folder).glob('*/*.json')
        metrics = json.loads(path.read_text())
        results.append({k: v for k, v in metrics.items() if k.startswith('accuracy')})
    assert results[0] == results[1] and len(results[0]) == 2

    error = run(TOOLS / 'dist_train.sh', 'missing.py', 2, fails=True)
    assert "train.py: error: config='missing.py': there is no such file" in error
