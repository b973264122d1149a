"""A user's runs: the installed package, on its command lines, in a separate folder.
Configs do not change; options make them small."""

import json
import math
import os
import subprocess
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from small_configs import options_of, write_data

from mmlinattn.utils import load_config

MIM = Path(sys.executable).with_name('mim')
MIM_FOLDER = Path(sysconfig.get_path('purelib')) / 'mmlinattn' / '.mim'


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
    """The folder ``data`` of the configs."""
    folder = tmp_path_factory.mktemp('data')
    write_data(folder, load_tool('dataset_converters/make_shapes.py'))
    return folder


@pytest.fixture
def user(tmp_path, modern, data):
    (tmp_path / 'data').symlink_to(data)
    yield User(tmp_path, modern)
    # of hundreds of megabytes, and pytest keeps folders for days
    for checkpoint in tmp_path.rglob('*.pth'):
        checkpoint.unlink()


@pytest.fixture
def quick():
    """Options that make a config small, and more; no test downloads weights."""

    def get(config, **more):
        options = options_of(load_config(str(config)))
        return {**options, 'randomness.seed': 0, 'pretrained': None, **more}

    return get
