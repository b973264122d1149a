"""Workers of data loaders that are spawned, as on Windows and macOS: every command that
reads data with workers, started in each of its ways."""

import sys
from pathlib import Path

import pytest
from class_configs import write_config, write_data
from loading import ROOT, run_command

# a step of the pipelines that notes how its process was started, and what it has
SPY = """
import multiprocessing
import sys
from pathlib import Path


class Spy:
    def __call__(self, sample):
        kinds = [getattr(x, '__name__', '') for x in sys.meta_path]
        has_operators = 'Finder' in kinds
        name = multiprocessing.current_process().name
        if name != 'MainProcess':
            text = f'{multiprocessing.get_start_method()} {has_operators}\\n'
            with Path('seen').open('a') as file:
                file.write(text)
        return sample

    transform = __call__
"""
MORE = """
from spy import Spy

steps.insert(1, dict(type=Spy))
spawned = dict(num_workers=1, persistent_workers=True)
train_dataloader.update(spawned)
val_dataloader.update(spawned)
test_dataloader.update(spawned)
env_cfg = dict(mp_cfg=dict(mp_start_method='spawn'))
"""
API = """
from mmlinattn.runs import train

if __name__ == '__main__':
    train('mine.py', 'work')
"""


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp('world')
    write_data(folder)
    return folder


@pytest.fixture
def run(world, tmp_path, monkeypatch):
    """Runs Python, and returns what the workers noted."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('PYTHONPATH', f'{tmp_path}:{ROOT}')
    Path('spy.py').write_text(SPY)

    def call(*words):
        Path('seen').unlink(missing_ok=True)
        run_command(sys.executable, '-W', 'ignore', *words)
        return set(Path('seen').read_text().splitlines())

    return call


@pytest.mark.full
@pytest.mark.parametrize('library', ['mmdet', 'mmpretrain', 'mmseg'])
def test_commands(library, run, world):
    """Training, testing, and the comparison of an exported file with its model."""
    write_config(library, world, MORE)
    command = '-m', 'mmlinattn'
    assert run(*command, 'train', 'mine.py', '--work-dir', 'work') == {'spawn True'}
    model = 'mine.py', 'work/epoch_1.pth'
    assert run(*command, 'test', *model, '--work-dir', 'test') == {'spawn True'}
    script = ROOT / 'tools/train.py', 'mine.py', '--resume', '--work-dir', 'work'
    longer = '--cfg-options', 'train_cfg.max_epochs=2'
    assert run(*script, *longer) == {'spawn True'}


@pytest.mark.full
def test_a_program(run, world):
    """One of the user's own that calls ``train``, behind a guard."""
    write_config('mmpretrain', world, MORE)
    Path('program.py').write_text(API)
    assert {line.split()[0] for line in run('program.py')} == {'spawn'}
