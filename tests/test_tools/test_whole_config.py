"""A config and the folder of its data: both of one labelling, or neither."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from own_folders import grow, label_map, photo
from PIL import Image

from mmlinattn.commands import new_config as tool
from mmlinattn.own_config import whole
from mmlinattn.utils.files import drafts_of

pytestmark = pytest.mark.openmmlab
ARGV = ['--data', 'my', '--task', 'seg', '--out', 'mine.py', '--epochs', '1']
ARGV += [
    '--no-estimate',
    '--backbone',
    'softpp-micro-linear',
    '--overwrite',
    '--classes',
]
FIRST, SECOND = ('ground', 'tree', 'car'), ('tree', 'car')


class Killed(BaseException):
    """Stands for the end of a process."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of photos with a config of three classes."""
    monkeypatch.chdir(tmp_path)
    tree = {'images/{i}.jpg': photo, 'masks/{i}.png': label_map(0, 1, 2)}
    grow(Path('my'), tree)
    tool.main([*ARGV, *FIRST])
    Path('mine_data/notes.txt').write_text('by hand')
    return Path()


def labelling():
    """The ids of the config's classes and those in its maps; None without a config."""
    if not Path('mine.py').exists():
        return None
    maps = Path('mine_data/labels').rglob('*.png')
    ids = {tuple(np.unique(np.asarray(Image.open(x)))) for x in maps}
    assert len(ids) == 1
    classes = Path('mine.py').read_text().count('ground') > 0
    return classes, ids.pop()


BEFORE, AFTER = (True, (0, 1, 2)), (False, (0, 1, 255))


def rewrite():
    tool.main([*ARGV, *SECOND, '--ignore', '0'])


def files():
    return {str(x): x.read_bytes() for x in Path().rglob('*') if x.is_file()}


def test_a_new_labelling_replaces_the_old_one(folder):
    assert labelling() == BEFORE
    rewrite()
    assert labelling() == AFTER
    assert Path('mine_data/notes.txt').read_text() == 'by hand'
    assert {x.name for x in Path().iterdir()} == {'my', 'mine.py', 'mine_data'}


@pytest.mark.parametrize('place', ['first map', 'config', 'rename', 'interrupt'])
def test_an_error_leaves_everything_as_it_was(folder, place, monkeypatch):
    before = files()
    error = KeyboardInterrupt if place == 'interrupt' else Killed

    def fail(*args, **kwargs):
        raise error

    names = dict(config=(Path, 'write_text'), rename=(whole.Path, 'rename'))
    kind, name = names.get(place, (Image.Image, 'save'))
    with monkeypatch.context() as patch:
        patch.setattr(kind, name, fail)
        with pytest.raises(error):
            rewrite()
    (draft,) = drafts_of(Path('mine.py'))  # by which a training tells of it
    assert files().keys() - {draft.name} == before.keys()
    assert all(files()[name] == content for name, content in before.items())
    rewrite()
    assert {x.name for x in Path().iterdir()} == {'my', 'mine.py', 'mine_data'}


def test_an_error_of_the_data_leaves_no_draft(folder, monkeypatch, error_of):
    before = files()

    def fail(*args, **kwargs):
        raise OSError('the disk is full')

    monkeypatch.setattr(Image.Image, 'save', fail)
    argv = [*ARGV, *SECOND, '--ignore', '0']
    assert 'the disk is full' in error_of(tool.main, argv)
    assert files() == before


@pytest.mark.parametrize('step', range(5))
def test_a_killed_exchange(folder, step, monkeypatch):
    """After any of its steps, there is one labelling or no config; the next run is
    whole, and leaves no drafts."""
    rename, count = Path.rename, iter(range(9))

    def rename_or_die(self, target):
        if next(count) == step:
            raise Killed
        return rename(self, target)

    with monkeypatch.context() as patch:
        # a killed process neither moves back nor cleans up
        patch.setattr(Path, 'rename', rename_or_die)
        patch.setattr(whole, 'remove', lambda path: None)
        if step < 4:
            with pytest.raises(Killed):
                die_at_once(patch)
        else:
            rewrite()
    assert labelling() in ((BEFORE, None, None, None, AFTER)[step],)
    rewrite()
    assert labelling() == AFTER
    assert {x.name for x in Path().iterdir()} == {'my', 'mine.py', 'mine_data'}


def die_at_once(patch):
    """Rewrites a config without the steps that follow an error."""
    patch.setattr(whole, 'reversed', lambda steps: (), raising=False)
    rewrite()


def test_folders_of_others(folder, error_of, monkeypatch):
    """They are refused before anything is written, and links stay links."""
    other = Path('other_data')
    other.mkdir()
    (other / 'theirs.txt').touch()
    argv = [x if x != 'mine.py' else 'other.py' for x in ARGV]
    assert 'not written by this tool' in error_of(tool.main, [*argv, *FIRST])
    assert os.listdir(other) == ['theirs.txt'] and not Path('other.py').exists()
    shutil.move('mine_data', 'large')
    Path('mine_data').symlink_to('large')
    rewrite()
    assert Path('mine_data').is_symlink() and labelling() == AFTER
