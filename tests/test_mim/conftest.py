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

MIM = Path(sys.executable).with_name('mim')
MIM_FOLDER = Path(sysconfig.get_path('purelib')) / 'mmlinattn' / '.mim'
SIDE = 64


class User:
    """Someone at the command line.

    Args:
        folder (Path): The working directory.
        modern (bool): Whether mim is onedl's.
    """

    def __init__(self, folder, modern):
        self.folder, self.modern = folder, modern
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
        assert (done.returncode != 0) == fails, done.stdout[-4000:]
        return done.stdout

    def mim(self, *args, fails=False):
        """Runs mim, and returns its output."""
        return self.run(MIM, *args, fails=fails)

    def train(self, library, config, options):
        """Trains by ``mim train`` of a library, or by our own tool ('tools').

        Returns:
            Training: Its work directory.
        """
        work_dir = self.folder / f'train-{config.stem}'
        return Training(
            work_dir, self._run('train', library, config, work_dir, options)
        )

    def test(self, library, config, checkpoint, options):
        """Tests, in the same ways as :meth:`train`, and returns metrics by name."""
        work_dir = self.folder / f'test-{config.stem}'
        output = self._run('test', library, config, work_dir, options, checkpoint)
        assert f'Load checkpoint from {checkpoint}' in output
        assert 'size mismatch' not in output and 'in source state_dict' not in output
        (report,) = work_dir.glob('*/*.json')
        return metrics_of(json.loads(report.read_text()))

    def _run(self, program, library, config, work_dir, options, *checkpoint):
        if library == 'tools':
            path = MIM_FOLDER / 'tools' / f'{program}.py'
            command = [sys.executable, path, config, *checkpoint]
        else:
            if library == 'mmdet' and self.modern:
                library = 'mmdetection'  # onedl's mim knows the long name only
            command = [MIM, program, library, config, '--gpus', '0']
            command += ['--checkpoint', *checkpoint] if checkpoint else []
        words = [f'{key}={value}' for key, value in options.items()]
        return self.run(*command, '--work-dir', work_dir, '--cfg-options', *words)


class Training:
    """The work directory of a training.

    Args:
        work_dir (Path): The folder.
        output (str): What the training printed.
    """

    def __init__(self, work_dir, output):
        self.output = output
        self.checkpoint = Path((work_dir / 'last_checkpoint').read_text())
        log = max(work_dir.glob('*/vis_data/scalars.json')).read_text()
        self.log = [json.loads(line) for line in log.splitlines()]
        losses = [line['loss'] for line in self.log if 'loss' in line]
        assert losses and all(map(math.isfinite, losses))

    @property
    def metrics(self):
        """Metrics of the last validation by name."""
        return metrics_of([line for line in self.log if 'loss' not in line][-1])


def metrics_of(line):
    metrics = {k: x for k, x in line.items() if k not in ('time', 'data_time', 'step')}
    assert metrics and all(map(math.isfinite, metrics.values())), line
    return metrics


@pytest.fixture(scope='session')
def modern():
    """True on the stack of the onedl distributions."""
    try:
        return bool(distribution('onedl-mim'))
    except PackageNotFoundError:
        return False


@pytest.fixture(scope='session')
def configs():
    """Folder of our configs, as installed."""
    assert MIM_FOLDER.is_dir(), 'install the package first: pip install .'
    return MIM_FOLDER / 'configs'


@pytest.fixture(scope='session')
def data(load_tool, tmp_path_factory):
    """The folder of a layout's dataset by the layout's name, made at first use."""
    made = {}

    def get(layout):
        if layout not in made:
            made[layout] = folder = tmp_path_factory.mktemp('data') / layout
            width = 2 * SIDE if layout == 'cityscapes' else SIDE
            options = f'--num-train 8 --num-val 4 --size {width} {SIDE}'
            tool = load_tool('dataset_converters/make_shapes.py')
            tool.main(['--layout', layout, '--out', str(folder), *options.split()])
        return made[layout]

    return get


@pytest.fixture
def user(tmp_path, modern):
    yield User(tmp_path, modern)
    # of hundreds of megabytes, and pytest keeps folders for days
    for checkpoint in tmp_path.rglob('*.pth'):
        checkpoint.unlink()


LAYOUTS = dict(
    Coco='coco', Cityscapes='cityscapes', ADE20K='ade20k', ImageNet='imagenet'
)
QUICK_PARTS = r'\w+_(dataloader|evaluator)\.|model\.(data_preprocessor|test_cfg)\.'


@pytest.fixture
def quick(data):
    """Options that make a config quick: folder of its data, size of images."""

    def get(config, **more):
        cfg = load_config(str(config))
        dataset = cfg.train_dataloader.dataset
        while 'dataset' in dataset:
            dataset = dataset.dataset
        layout = next(x for x in LAYOUTS if x in dataset.type)
        root = data(LAYOUTS[layout])
        # no test downloads weights
        options = {'randomness.seed': 0, 'pretrained': None}
        options['train_dataloader.batch_size'] = 2
        wide = layout == 'Cityscapes' or cfg.default_scope == 'mmseg'
        for key, value in leaves_of(cfg.to_dict()):
            quicker = quick_value(key, value, root, wide)
            if quicker is not None and re.match(QUICK_PARTS, key):
                options[key] = quicker
        return {**options, **more}

    return get


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
    if name in ('ann_file', 'seg_prefix') and '_evaluator' in key:
        return root / value.split('/', 2)[2]  # data/LAYOUT/
    if name == 'scales':
        return f'[{SIDE if isinstance(value[0], int) else resized}]'
    if name == 'scale' and isinstance(value, list):
        return f'[{resized},{resized}]'
    if name == 'crop_size' and value == (384, 600):
        return f'({SIDE // 2},{SIDE})'
    return {
        'data_root': f'{root}/',
        'scale': SIDE if isinstance(value, int) else resized,
        'crop_size': SIDE if isinstance(value, int) else whole,
        'size': whole,
        'stride': f'({SIDE // 2},{SIDE // 2})',
        'max_size': 4 * SIDE,
        'num_workers': 0,
        'persistent_workers': False,
        'times': 1,
    }.get(name)
