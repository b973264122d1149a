"""Trainings of the three libraries that are killed and resumed by a user.

They are killed with SIGKILL, in an iteration, while a checkpoint is written, or between
epochs. The final weights must be those of the undisturbed training, bit for bit.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

pytest.importorskip('mmdet')
pytest.importorskip('mmpretrain')
pytest.importorskip('mmseg')

ROOT = Path(__file__).resolve().parents[2]
CONFIGS, TOOLS = ROOT / 'configs' / 'soft', ROOT / 'tools'
MAKE_SHAPES = TOOLS / 'dataset_converters' / 'make_shapes.py'
SIDE = 64
ARCH = dict(
    _delete_=True,
    embed_dims=[8, 16, 24, 32],
    depths=[1, 1, 1, 1],
    num_heads=[1, 2, 3, 4],
)
MOMENTS = ('iteration', 'writing', 'between epochs')

COMMON = """
randomness = dict(seed=0)
env_cfg = dict(cudnn_benchmark=False)
loading = dict(num_workers=0, persistent_workers=False)
model = dict(backbone=dict(arch={arch}))
val_dataloader = dict(dataset=dict(data_root='{data}/'), **loading)
test_dataloader = val_dataloader
default_hooks = dict(logger=dict(interval=1))
"""
# task: layout of the data, config, smaller settings
TASKS = {
    'classifier': (
        'imagenet',
        'softpp-t_in1k.py',
        """
model['head'] = dict(in_channels=32)
train_dataloader = dict(batch_size=4, dataset=dict(data_root='{data}'), **loading)
train_cfg = dict(max_epochs=4, val_interval=1)
""",
    ),
    'detector': (
        'coco',
        'retinanet_softpp-t_fpn_1x_coco.py',
        """
model['neck'] = dict(in_channels=[16, 24, 32])
train_dataloader = dict(batch_size=2, dataset=dict(data_root='{data}/'), **loading)
train_cfg = dict(max_epochs=4, val_interval=1)
val_evaluator = dict(ann_file='{data}/annotations/instances_val2017.json')
test_evaluator = val_evaluator
""",
    ),
    'segmentor': (
        'ade20k',
        'upernet_softpp-t_1x_ade20k-512x512.py',
        """
model['data_preprocessor'] = dict(size=(64, 64))
model['decode_head'] = dict(in_channels=[8, 16, 24, 32], channels=16)
model['auxiliary_head'] = dict(in_channels=24, channels=16)
train_dataloader = dict(batch_size=2, dataset=dict(data_root='{data}'), **loading)
train_cfg = dict(max_iters=12, val_interval=3)
default_hooks['checkpoint'] = dict(interval=3)
""",
    ),
}
# entries of pipelines, which a config can only replace as a whole
OPTIONS = {
    'classifier': {},
    'detector': {
        'train_dataloader.dataset.pipeline.2.scale': f'({SIDE},{SIDE})',
        'val_dataloader.dataset.pipeline.1.scale': f'({SIDE},{SIDE})',
    },
    'segmentor': {
        'train_dataloader.dataset.pipeline.2.scale': f'({2 * SIDE},{SIDE})',
        'train_dataloader.dataset.pipeline.3.crop_size': f'({SIDE},{SIDE})',
        'val_dataloader.dataset.pipeline.1.scale': f'({2 * SIDE},{SIDE})',
    },
}


class Trainings:
    """Trainings of one task, in one folder.

    Args:
        task (str): A key of TASKS.
        folder (Path): Folder for data, configs and results.
    """

    def __init__(self, task, folder):
        layout, config, changes = TASKS[task]
        self.folder = folder / task
        self.folder.mkdir(parents=True)
        data = self.folder / layout
        options = '--size', SIDE, SIDE, '--num-train', 8, '--num-val', 4
        command = [MAKE_SHAPES, '--layout', layout, '--out', data, *options]
        subprocess.run([sys.executable, *map(str, command)], check=True)
        self.config = self.folder / 'config.py'
        text = (COMMON + changes).replace('{data}', str(data))
        self.config.write_text(
            f"_base_ = '{CONFIGS / config}'\n" + text.replace('{arch}', repr(ARCH))
        )
        self.options = [f'{key}={value}' for key, value in OPTIONS[task].items()]

    def start(self, name, *args):
        """Starts a training, its output as a stream of lines."""
        command = [sys.executable, '-u', TOOLS / 'train.py', self.config, *args]
        command += ['--work-dir', self.folder / name]
        if self.options:
            command += ['--cfg-options', *self.options]
        return subprocess.Popen(
            list(map(str, command)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env=dict(os.environ, OMP_NUM_THREADS='1'),  # reproducible
            start_new_session=True,
        )

    def finish(self, name, *args):
        """Runs a training to its end; its last weights."""
        process = self.start(name, *args)
        output = process.communicate()[0]
        assert process.returncode == 0, output[-3000:]
        last = (self.folder / name / 'last_checkpoint').read_text()
        return torch.load(last, map_location='cpu', weights_only=False)['state_dict']

    def kill(self, name, moment, count, *args):
        """Starts a training, and kills it at the n-th of these moments."""
        process = self.start(name, *args)
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(process.stdout))
        reader.start()
        sign = 'Saving checkpoint' if moment == 'between epochs' else ' loss: '
        seen = 0
        while process.poll() is None and seen < count:
            drafts = list((self.folder / name).glob('.*.pth.*.part'))
            seen = len(drafts) if moment == 'writing' else str(lines).count(sign)
            time.sleep(0.002)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reader.join()
        assert process.returncode <= 0, ''.join(lines)[-3000:]


@pytest.mark.modern
@pytest.mark.full
@pytest.mark.parametrize('task', TASKS)
def test_killed_training_ends_as_an_undisturbed_one(task, tmp_path):
    trainings = Trainings(task, tmp_path)
    undisturbed = trainings.finish('undisturbed')
    for moment in MOMENTS:
        trainings.kill(moment, moment, 1)
        trainings.kill(moment, 'iteration', 1, '--resume')
        final = trainings.finish(moment, '--resume')
        assert final.keys() == undisturbed.keys()
        assert all(torch.equal(final[key], undisturbed[key]) for key in final)
