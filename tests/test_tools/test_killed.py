"""A detector's training that is killed and resumed by a user.

It is killed with SIGKILL, in an iteration, while a checkpoint is written, or between
epochs. The final weights must be those of the undisturbed training, bit for bit.
test_atomic_checkpoint_hook.py has trainings by iterations, too.
"""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch
from loading import ROOT
from small_configs import draw_shapes

pytestmark = pytest.mark.full

CONFIG = f"""
_base_ = '{ROOT}/configs/soft/retinanet_softpp-t_fpn_1x_coco.py'
randomness = dict(seed=0)
loading = dict(num_workers=0, persistent_workers=False)
arch = dict(
    embed_dims=[8, 16, 24, 32],
    depths=[1, 1, 1, 1],
    num_heads=[1, 2, 3, 4],
    _delete_=True,
)
model = dict(backbone=dict(arch=arch), neck=dict(in_channels=[16, 24, 32]))
train_dataloader = dict(batch_size=2, dataset=dict(data_root='data/'), **loading)
val_dataloader = dict(dataset=dict(data_root='data/'), **loading)
test_dataloader = val_dataloader
val_evaluator = dict(ann_file='data/annotations/instances_val2017.json')
test_evaluator = val_evaluator
train_cfg = dict(max_epochs=4, val_interval=1)
default_hooks = dict(logger=dict(interval=1))
"""
# entries of pipelines, which a config can only replace as a whole
SMALL = [f'{x}_dataloader.dataset.pipeline' for x in ('train', 'val')]
SMALL = [f'{SMALL[0]}.2.scale=(64,64)', f'{SMALL[1]}.1.scale=(64,64)']


@pytest.fixture
def start(tmp_path):
    """Starts a training in a folder of its own, its output as a stream of lines."""
    draw_shapes('coco', tmp_path / 'data', 8, 4, 64)
    (tmp_path / 'config.py').write_text(CONFIG)

    def start(name, *args):
        command = [sys.executable, '-u', ROOT / 'tools/train.py', 'config.py', *args]
        return subprocess.Popen(
            [*command, '--work-dir', name, '--cfg-options', *SMALL],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
            env=dict(os.environ, OMP_NUM_THREADS='1'),  # reproducible
            start_new_session=True,
        )

    return start


def finish(process, folder):
    """Runs a training to its end; its last weights."""
    output = process.communicate()[0]
    assert process.returncode == 0, output[-3000:]
    path = folder.parent / (folder / 'last_checkpoint').read_text()
    return torch.load(path, map_location='cpu', weights_only=False)['state_dict']


def kill(process, folder, moment):
    """Kills a training at the first of these moments."""
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(process.stdout))
    reader.start()
    sign = 'Saving checkpoint' if moment == 'between epochs' else ' loss: '
    seen = 0
    while process.poll() is None and not seen:
        drafts = [*folder.glob('.*.pth.*.part')]
        seen = len(drafts) if moment == 'writing' else str(lines).count(sign)
        time.sleep(0.002)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    reader.join()
    assert process.returncode <= 0, ''.join(lines)[-3000:]


def test_killed_training_ends_as_an_undisturbed_one(start, tmp_path):
    undisturbed = finish(start('undisturbed'), tmp_path / 'undisturbed')
    for moment in ('iteration', 'writing', 'between epochs'):
        folder = tmp_path / moment.replace(' ', '_')
        kill(start(folder.name), folder, moment)
        kill(start(folder.name, '--resume'), folder, 'iteration')
        final = finish(start(folder.name, '--resume'), folder)
        assert final.keys() == undisturbed.keys()
        assert all(torch.equal(final[key], undisturbed[key]) for key in final)
