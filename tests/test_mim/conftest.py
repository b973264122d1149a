"""Runs as a user starts them: the installed package, on its command lines, in a folder
of one's own. Configs stay as they are; options say where the data is, how large the
images are and how long it goes on."""
import json
import math
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import torch

MIM_FOLDER = Path(sysconfig.get_path('purelib')) / 'mmlinattn' / '.mim'
SIDE = 64
NUM_TRAIN = 8
# what is logged beside metrics
TIMES = {'time', 'data_time', 'step'}


def is_modern():
    """Whether this is the stack of the onedl distributions."""
    try:
        distribution('onedl-mim')
    except PackageNotFoundError:
        return False
    return True


class User:
    """Someone at the command line.

    Args:
        folder (Path): Where they work.
        data (Callable): The folder of a layout's dataset, by the layout's name.
    """

    def __init__(self, folder, data):
        self.folder = folder
        self.data = data
        self.env = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}
        # nothing depends on which machine, and nothing competes for its cores
        self.env['CUDA_VISIBLE_DEVICES'] = ''
        self.env.setdefault('OMP_NUM_THREADS', '2')

    def run(self, *command, fails=False):
        """Runs a command to its end, and returns what it printed."""
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            universal_newlines=True)
        assert (done.returncode != 0) == fails, tail(done.stdout)
        return done.stdout

    def start(self, *command):
        """Starts a command in a process group of its own."""
        return subprocess.Popen(
            [str(part) for part in command],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True)

    def train_command(self, library, config, work_dir, options, *args):
        if library == 'mmlinattn' and is_modern():
            library = 'tools'
        begin = [python(), MIM_FOLDER / 'tools' / 'train.py', config]
        if library != 'tools':
            begin = [mim(), 'train', mim_name(library), config, '--gpus', '0']
        return [
            *begin, '--work-dir', work_dir, *args, '--cfg-options',
            *(f'{key}={value}' for key, value in options.items())
        ]

    def train(self, library, config, options, work_dir='train', args=()):
        """Trains, by ``mim train`` of a library, or, library='tools', by our tool.

        Args:
            library (str): mmdet, mmsegmentation, mmpretrain, mmlinattn or tools;
                mmlinattn means tools where mim can't find us.
            config (str | Path): Path of the config.
            options (dict): Options of the config to override.
            work_dir (str): Name of the work directory in the user's folder.
            args (tuple): More arguments of the training tool.

        Returns:
            Training: What it left.
        """
        output = self.run(*self.train_command(library, config, work_dir, options, *args))
        return Training(self.folder / work_dir, output)

    def test(self, library, config, checkpoint, options):
        """Tests, by the same ways as :meth:`train`, and returns metrics by name."""
        work_dir = self.folder / 'test'
        if library == 'mmlinattn' and is_modern():
            library = 'tools'
        begin = [python(), MIM_FOLDER / 'tools' / 'test.py', config, checkpoint]
        if library != 'tools':
            begin = [
                mim(), 'test',
                mim_name(library), config, '--checkpoint', checkpoint, '--gpus', '0'
            ]
        output = self.run(*begin, '--work-dir', work_dir, '--cfg-options',
                          *(f'{key}={value}' for key, value in options.items()))
        assert f'Load checkpoint from {checkpoint}' in output
        assert 'size mismatch' not in output and 'in source state_dict' not in output
        report, = work_dir.glob('*/*.json')
        return metrics_of(json.loads(report.read_text()))


class Training:
    """What a training left in its work directory.

    Args:
        work_dir (Path): The folder.
        output (str): What was printed.
    """

    def __init__(self, work_dir, output):
        self.work_dir = work_dir
        self.output = output
        log = max(work_dir.glob('*/vis_data/scalars.json'))
        self.log = [json.loads(line) for line in log.read_text().splitlines()]

    @property
    def checkpoint(self):
        """Path of the last checkpoint."""
        path = Path((self.work_dir / 'last_checkpoint').read_text())
        assert path.is_file()
        return path

    @property
    def iterations(self):
        """Numbers of the iterations that this run logged."""
        return [line['iter'] for line in self.log if 'loss' in line]

    @property
    def metrics(self):
        """Metrics of the last validation by name."""
        losses = [line['loss'] for line in self.log if 'loss' in line]
        assert losses and all(math.isfinite(loss) for loss in losses)
        return metrics_of(next(line for line in reversed(self.log) if not {'loss'} &
                               set(line)))

    def optimizer_steps(self):
        """Numbers of steps that the optimizer has made, one for each parameter."""
        state = torch.load(
            self.checkpoint, map_location='cpu', weights_only=False)
        return {int(entry['step']) for entry in state['optimizer']['state'].values()}


def metrics_of(line):
    metrics = {key: value for key, value in line.items() if key not in TIMES}
    assert all(math.isfinite(value) for value in metrics.values()), metrics
    return metrics


def tail(output, num_lines=40):
    return '\n'.join(output.splitlines()[-num_lines:])


def python():
    return sys.executable


def mim():
    return Path(sys.executable).with_name('mim')


def mim_name(library):
    """mmdet's name in mim: onedl's mim knows the long one only."""
    return 'mmdetection' if library == 'mmdet' and is_modern() else library


@pytest.fixture(scope='session')
def configs():
    """Folder of our configs, as installed."""
    assert MIM_FOLDER.is_dir(), 'install the package first: pip install .'
    return MIM_FOLDER / 'configs'


@pytest.fixture(scope='session')
def modern():
    return is_modern()


@pytest.fixture(scope='session')
def data(configs, tmp_path_factory):
    """The folder of a layout's dataset by the layout's name, made at first use."""
    made = {}

    def get(layout):
        if layout not in made:
            folder = tmp_path_factory.mktemp('data') / layout
            width = 2 * SIDE if layout == 'cityscapes' else SIDE
            tool = MIM_FOLDER / 'tools' / 'dataset_converters' / 'make_shapes.py'
            subprocess.run([
                python(), tool, '--layout', layout, '--out', folder, '--num-train',
                str(NUM_TRAIN), '--num-val', '4', '--size', str(width), str(SIDE)
            ], check=True)
            made[layout] = folder
        return made[layout]

    return get


@pytest.fixture
def user(data, tmp_path):
    yield User(tmp_path, data)
    for checkpoint in tmp_path.rglob('*.pth'):  # hundreds of megabytes each
        checkpoint.unlink()


@pytest.fixture(scope='session')
def quick(data):
    """Options that make a config of a kind quick, by the kind's name."""

    def get(kind, **more):
        options = {'randomness.seed': 0, 'train_dataloader.batch_size': 2}
        for split in ('train', 'val', 'test'):
            options[f'{split}_dataloader.num_workers'] = 0
            options[f'{split}_dataloader.persistent_workers'] = False
        options.update(KINDS[kind](data))
        return {**options, **more}

    return get


def both(options):
    """The same for validation and test."""
    return {
        f'{split}_{key}': value
        for split in ('val', 'test') for key, value in options.items()
    }


def coco(data):
    root, scale = data('coco'), f'({SIDE},{SIDE})'
    return {
        'train_dataloader.dataset.data_root': f'{root}/',
        'train_dataloader.dataset.pipeline.2.scale': scale,
        **both({
            'dataloader.dataset.data_root': f'{root}/',
            'dataloader.dataset.pipeline.1.scale': scale,
            'evaluator.ann_file': f'{root}/annotations/instances_val2017.json',
        })
    }


def cityscapes_instances(data):
    root, scale = data('cityscapes'), f'({2 * SIDE},{SIDE})'
    annotations = f'{root}/annotations/instancesonly_filtered_gtFine_val.json'
    return {
        'train_dataloader.dataset.times': 1,
        'train_dataloader.dataset.dataset.data_root': f'{root}/',
        'train_dataloader.dataset.dataset.pipeline.2.scale': f'[{scale},{scale}]',
        **both({
            'dataloader.dataset.data_root': f'{root}/',
            'dataloader.dataset.pipeline.1.scale': scale,
            'evaluator.0.ann_file': annotations,
            'evaluator.1.seg_prefix': f'{root}/gtFine/val',
        })
    }


def segmentation(root, scale):
    size = f'({SIDE},{SIDE})'
    return {
        'model.data_preprocessor.size': size,
        'train_dataloader.dataset.data_root': root,
        'train_dataloader.dataset.pipeline.2.scale': scale,
        'train_dataloader.dataset.pipeline.3.crop_size': size,
        'default_hooks.logger.interval': 1,
        **both({
            'dataloader.dataset.data_root': root,
            'dataloader.dataset.pipeline.1.scale': scale,
        })
    }


def ade20k(data):
    return segmentation(data('ade20k'), f'({4 * SIDE},{SIDE})')


def cityscapes(data):
    return {
        **segmentation(data('cityscapes'), f'({2 * SIDE},{SIDE})'),
        'model.test_cfg.crop_size': f'({SIDE},{SIDE})',
        'model.test_cfg.stride': f'({SIDE // 2},{SIDE // 2})',
    }


def imagenet(data):
    root = data('imagenet')
    return {
        'train_dataloader.dataset.data_root': root,
        'train_dataloader.dataset.pipeline.1.scale': SIDE,
        **both({
            'dataloader.dataset.data_root': root,
            'dataloader.dataset.pipeline.1.scale': SIDE,
            'dataloader.dataset.pipeline.2.crop_size': SIDE,
        })
    }


KINDS = dict(
    coco=coco,
    cityscapes_instances=cityscapes_instances,
    ade20k=ade20k,
    cityscapes=cityscapes,
    imagenet=imagenet)
