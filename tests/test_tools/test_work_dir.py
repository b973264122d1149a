"""The folder of a training: one at a time, its own best checkpoint, a full disk."""

import errno
import logging
import subprocess
import sys
from types import SimpleNamespace

import pytest
from mmengine.config import Config

from mmlinattn.cli import parser as cli
from mmlinattn.runs import work_dir

pytestmark = pytest.mark.openmmlab
HOLDER = """
import sys
from mmlinattn.runs.work_dir import lock
lock(sys.argv[1])
print('locked', flush=True)
child = __import__('multiprocessing').get_context('fork').Process(
    target=sys.stdin.read, daemon=True
)
child.start()
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process with the lock, and a child of it, such as one that loads data."""
    command = [sys.executable, '-c', HOLDER, str(tmp_path)]
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process = subprocess.Popen(command, **pipes)
    assert process.stdout.readline() == 'locked\n'
    yield process
    process.kill()
    process.communicate()


def test_a_second_training_is_refused_while_the_first_lives(holder, tmp_path):
    text = f'is in use by another training .process {holder.pid} on .*--work-dir'
    for _ in range(2):
        with pytest.raises(FileExistsError, match=text):
            work_dir.lock(str(tmp_path))
    (tmp_path / 'other').mkdir()
    work_dir.lock(str(tmp_path / 'other'))
    holder.kill()  # its child lives on
    holder.wait()
    work_dir.lock(str(tmp_path))


def test_systems_without_locks(tmp_path, monkeypatch):
    """Such as some network file systems: a training is not refused."""
    fcntl = pytest.importorskip('fcntl')

    def lockf(*args):
        raise OSError(errno.ENOLCK, 'No locks available')

    monkeypatch.setattr(fcntl, 'lockf', lockf)
    work_dir.lock(str(tmp_path))
    monkeypatch.setitem(sys.modules, 'fcntl', None)
    work_dir.lock(str(tmp_path))


def run_of(folder, config='', **info):
    return SimpleNamespace(
        rank=0,
        work_dir=str(folder),
        cfg=Config(dict(load_from=config)),
        message_hub=SimpleNamespace(runtime_info=info),
    )


def test_best_checkpoints_of_earlier_runs_are_moved(tmp_path):
    """One glob finds one file: not a resumed run's own, nor one that a config names."""
    said, warned = [], []
    hook = work_dir.EarlierBest(said.append, warned.append)
    hook.before_train(run_of(tmp_path))
    assert not said and not list(tmp_path.iterdir())
    for content in ('first', 'second'):
        (tmp_path / 'best_top1_epoch_3.pth').write_text(content)
        (tmp_path / 'epoch_4.pth').write_text(content)
        hook.before_train(run_of(tmp_path))
    earlier = tmp_path / 'earlier'
    assert (earlier / 'best_top1_epoch_3.pth').read_text() == 'first'
    assert (earlier / 'best_top1_epoch_3-2.pth').read_text() == 'second'
    assert {x.name for x in tmp_path.iterdir()} == {'earlier', 'epoch_4.pth'}
    assert len(said) == 2 and 'best_top1_epoch_3-2.pth' in said[1]
    own = tmp_path / 'best_top1_epoch_5.pth'
    for path in (own, tmp_path / 'best_top1_epoch_6.pth'):
        path.touch()
    elsewhere = '/another/machine/best_top1_epoch_5.pth'  # the folder was copied
    hook.before_train(run_of(tmp_path, best_ckpt=elsewhere, best_score=1))
    assert list(tmp_path.glob('best_*')) == [own]
    hook.before_train(run_of(tmp_path, config=str(own)))
    assert own.exists() and 'epoch_5.pth, which the config names' in warned[0]
    other = run_of(tmp_path)
    other.rank = 1
    hook.before_train(other)
    assert own.exists()


def test_a_full_disk_costs_a_line(error_of, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['train.py'])

    def write(number):
        errors = cli.errors_in_one_line(work_dir.FullDiskError)
        with errors, work_dir.full_disk_in_a_line('runs', 'go on with --resume'):
            raise OSError(number, 'No room')

    line = error_of(write, errno.ENOSPC)
    assert line == (
        "train.py: error: work_dir='runs': No room: free space, and go on with --resume"
    )
    assert 'No room' in error_of(write, errno.EDQUOT)
    with pytest.raises(PermissionError):
        write(errno.EACCES)


def test_a_log_on_a_full_disk(tmp_path, capsys):
    """Its error ends the run; others are printed, as Python does."""
    logger = logging.Logger('run')
    logger.addHandler(logging.FileHandler(tmp_path / 'run.log'))
    logger.addHandler(logging.StreamHandler(sys.stderr))
    work_dir.raise_full_disk(logger)
    file, _ = logger.handlers
    number = errno.ENOSPC

    def write(text):
        raise OSError(number, 'No room')

    file.stream = SimpleNamespace(write=write, close=lambda: None, flush=lambda: None)
    with pytest.raises(OSError, match='No room'):
        logger.warning('epoch 1')
    number = errno.EIO
    logger.warning('epoch 2')
    assert 'Logging error' in capsys.readouterr().err
