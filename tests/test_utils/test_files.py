"""Files that are written whole or not at all."""

import errno
import os
import stat

import pytest

from mmlinattn.utils.files import DRAFTS, whole_file

pytestmark = pytest.mark.modern


def test_whole(tmp_path):
    path = tmp_path / 'new' / 'x.txt'
    with whole_file(path) as draft:
        draft.write_text('one')
        assert draft.parent == path.parent and not path.exists()
    assert path.read_text() == 'one'
    with whole_file(str(path)) as draft:
        draft.write_text('two')
        assert path.read_text() == 'one'
    assert path.read_text() == 'two' and list(path.parent.iterdir()) == [path]


def test_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / 'x.txt'
    path.write_text('one')

    def write_half():
        with whole_file(path) as draft:
            draft.write_text('tw')
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert path.read_text() == 'one' and list(tmp_path.iterdir()) == [path]


def test_drafts_of_two_processes(tmp_path):
    path = tmp_path / 'x.txt'
    with whole_file(path) as one, whole_file(path) as other:
        one.write_text('one')
        other.write_text('other')
        assert {one, other} == set(tmp_path.glob(DRAFTS))
    assert path.read_text() == 'one' and list(tmp_path.iterdir()) == [path]


def test_file_system_without_fsync_of_folders(tmp_path, monkeypatch):
    fsync = os.fsync

    def sync(number):
        if stat.S_ISDIR(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, 'Invalid argument')
        fsync(number)

    monkeypatch.setattr(os, 'fsync', sync)
    with whole_file(tmp_path / 'x.txt') as draft:
        draft.write_text('one')
    assert (tmp_path / 'x.txt').read_text() == 'one'


def test_permissions_are_those_of_any_file(tmp_path):
    with whole_file(tmp_path / 'x.txt') as draft:
        draft.write_text('one')
    (tmp_path / 'y.txt').write_text('one')
    modes = [stat.S_IMODE(os.stat(tmp_path / f'{x}.txt').st_mode) for x in 'xy']
    assert modes[0] == modes[1]
