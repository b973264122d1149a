"""A user's runs: the installed package, on its command lines, in a separate folder.
Configs do not change; options make them small."""

import os
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from subprocess import STDOUT

import pytest
from loading import run_command
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
        options = dict(cwd=self.folder, env=self.env, stderr=STDOUT)
        return run_command(*command, fails=fails, **options)

    def mim(self, *args, fails=False):
        """Runs mim, and returns its output."""
        return self.run(MIM, *args, fails=fails)

    def use(self, program, library, config, options, *checkpoint):
        """Trains or tests by ``mim`` and a library, or by our own tool ('tools').

        Returns:
            tuple[Path, str]: The work directory and the output.
        """
        work_dir = self.folder / f'{program}-{config.stem}'
        if library == 'tools':
            path = MIM_FOLDER / 'tools' / f'{program}.py'
            command = [sys.executable, path, config, *checkpoint]
        else:
            if library == 'mmdet' and self.modern:
                library = 'mmdetection'  # onedl's mim knows the long name only
            command = [MIM, program, library, config, '--gpus', '0']
            command += ['--checkpoint', *checkpoint] if checkpoint else []
        words = [f'{key}={value}' for key, value in options.items()]
        command += ['--work-dir', work_dir, '--cfg-options', *words]
        return work_dir, self.run(*command)


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
def data(tmp_path_factory):
    """The folder ``data`` of the configs."""
    folder = tmp_path_factory.mktemp('data')
    write_data(folder)
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
