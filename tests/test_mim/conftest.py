"""A user's runs: the installed package, on its command lines, in a separate folder.
Configs do not change; options set the data's folder, the size of images, the length
and the seed."""

import json
import math
import os
import re
import subprocess
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from mmlinattn.utils import load_config

PYTHON = sys.executable
MIM = Path(PYTHON).with_name('mim')
MIM_FOLDER = Path(sysconfig.get_path('purelib')) / 'mmlinattn' / '.mim'
SIDE = 64
NUM_TRAIN = 8
# logged values besides metrics
TIMES = {'time', 'data_time', 'step'}


def is_modern():
    """True for the stack of the onedl distributions."""
    try:
        distribution('onedl-mim')
    except PackageNotFoundError:
        return False
    return True


class User:
    """Someone at the command line.

    Args:
        folder (Path): The working directory.
    """

    def __init__(self, folder):
        self.folder = folder
        self.env = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}
        # results alike on every machine; threads that compete for cores only wait
        self.env['CUDA_VISIBLE_DEVICES'] = ''
        self.env.setdefault('OMP_NUM_THREADS', '1')

    def run(self, *command, fails=False):
        """Runs a command to its end, and returns its output."""
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert (done.returncode != 0) == fails, tail(done.stdout)
        return done.stdout

    def mim(self, *args, fails=False):
        """Runs mim, and returns its output."""
        return self.run(MIM, *args, fails=fails)

    def train_command(self, library, config, work_dir, options, *args):
        """The command of :meth:`train`."""
        begin = [PYTHON, MIM_FOLDER / 'tools' / 'train.py', config]
        if uses_mim(library):
            begin = [MIM, 'train', mim_name(library), config, '--gpus', '0']
        return [
            *begin,
            '--work-dir',
            work_dir,
            *args,
            '--cfg-options',
            *key_values(options),
        ]

    def train(self, library, config, options, *args):
        """Trains, by ``mim train`` of a library or by our own tool.

        Args:
            library (str): mmdet, mmsegmentation, mmpretrain, mmlinattn or tools;
                mmlinattn means tools where mim can't find us.
            config (str | Path): Path of the config.
            options (dict): Options of the config to override.
            *args: More arguments of the training tool.

        Returns:
            Training: Its work directory.
        """
        work_dir = self.folder / 'train'
        command = self.train_command(library, config, work_dir, options, *args)
        return Training(work_dir, self.run(*command))

    def test(self, library, config, checkpoint, options, *args):
        """Tests, in the same ways as :meth:`train`, and returns metrics by name."""
        work_dir = self.folder / f'test{"".join(args)}'
        begin = [PYTHON, MIM_FOLDER / 'tools' / 'test.py', config, checkpoint]
        if uses_mim(library):
            begin = [
                MIM,
                'test',
                mim_name(library),
                config,
                '--checkpoint',
                checkpoint,
                '--gpus',
                '0',
            ]
        output = self.run(
            *begin, '--work-dir', work_dir, *args, '--cfg-options', *key_values(options)
        )
        assert f'Load checkpoint from {checkpoint}' in output
        assert 'size mismatch' not in output and 'in source state_dict' not in output
        (report,) = work_dir.glob('*/*.json')
        return metrics_of(json.loads(report.read_text()))


class Training:
    """The work directory of a training.

    Args:
        work_dir (Path): The folder.
        output (str): Its output.
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
    def metrics(self):
        """Metrics of the last validation by name."""
        losses = [line['loss'] for line in self.log if 'loss' in line]
        assert losses and all(math.isfinite(loss) for loss in losses)
        return metrics_of([line for line in self.log if 'loss' not in line][-1])


def metrics_of(line):
    metrics = {key: value for key, value in line.items() if key not in TIMES}
    assert metrics and all(map(math.isfinite, metrics.values())), line
    return metrics


def key_values(options):
    return [f'{key}={value}' for key, value in options.items()]


def tail(output, num_lines=40):
    return '\n'.join(output.splitlines()[-num_lines:])


def uses_mim(library):
    return library != 'tools' and not (library == 'mmlinattn' and is_modern())


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
def data(load_tool, tmp_path_factory):
    """The folder of a layout's dataset by the layout's name, made at first use."""
    made = {}

    def get(layout):
        if layout not in made:
            folder = tmp_path_factory.mktemp('data') / layout
            width = 2 * SIDE if layout == 'cityscapes' else SIDE
            options = f'--num-train {NUM_TRAIN} --num-val 4 --size {width} {SIDE}'
            tool = load_tool('dataset_converters/make_shapes.py')
            tool.main(['--layout', layout, '--out', str(folder), *options.split()])
            made[layout] = folder
        return made[layout]

    return get


@pytest.fixture
def user(tmp_path):
    yield User(tmp_path)
    remove_checkpoints(tmp_path)


@pytest.fixture(scope='module')
def earlier_user(tmp_path_factory):
    """One whose results several tests build on."""
    folder = tmp_path_factory.mktemp('earlier')
    yield User(folder)
    remove_checkpoints(folder)


def remove_checkpoints(folder):
    """Removes checkpoints of hundreds of megabytes: pytest keeps folders for days."""
    for checkpoint in folder.rglob('*.pth'):
        checkpoint.unlink()


@pytest.fixture(scope='session')
def quick(data):
    """Options that make a config quick: folder of its data, size of images."""

    def get(config, **more):
        cfg = load_config(str(config))
        layout = next(x for x in LAYOUTS if x in innermost(cfg.train_dataloader).type)
        root = data(LAYOUTS[layout])
        options = {
            'randomness.seed': 0,
            # no test downloads weights
            'pretrained': None,
            'train_dataloader.batch_size': 2,
        }
        wide = layout == 'Cityscapes' or cfg.default_scope == 'mmseg'
        for key, value in leaves_of(cfg.to_dict()):
            quicker = quick_value(key, value, root, wide)
            if quicker is not None and re.match(QUICK_PARTS, key):
                options[key] = quicker
        return {**options, **more}

    return get


LAYOUTS = dict(
    Coco='coco', Cityscapes='cityscapes', ADE20K='ade20k', ImageNet='imagenet'
)
QUICK_PARTS = r'\w+_(dataloader|evaluator)\.|model\.(data_preprocessor|test_cfg)\.'


def innermost(dataset):
    while 'dataset' in dataset:
        dataset = dataset.dataset
    return dataset


def leaves_of(node, key=''):
    """Dotted keys and values of a config; lists of numbers are values."""
    if isinstance(node, dict):
        node = node.items()
    elif isinstance(node, list) and any(isinstance(x, (dict, list)) for x in node):
        node = enumerate(node)
    else:
        yield key, node
        return
    for name, child in node:
        yield from leaves_of(child, f'{key}.{name}'.strip('.'))


def quick_value(key, value, root, wide):
    """The value that overrides one, or None."""
    name = key.rpartition('.')[2]
    whole = f'({SIDE},{SIDE})'
    resized = f'({(1 + wide) * SIDE},{SIDE})'
    if name == 'data_root':
        return f'{root}/'
    if name in ('ann_file', 'seg_prefix') and '_evaluator' in key:
        return root / value.split('/', 2)[2]  # data/LAYOUT/
    if name == 'scales':
        return f'[{SIDE if isinstance(value[0], int) else resized}]'
    if name == 'scale':
        if isinstance(value, list):
            return f'[{resized},{resized}]'
        return SIDE if isinstance(value, int) else resized
    if name == 'crop_size' and value == (384, 600):
        return f'({SIDE // 2},{SIDE})'
    return {
        'crop_size': SIDE if isinstance(value, int) else whole,
        'size': whole,
        'stride': f'({SIDE // 2},{SIDE // 2})',
        'max_size': 4 * SIDE,
        'num_workers': 0,
        'persistent_workers': False,
        'times': 1,
    }.get(name)
