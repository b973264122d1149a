"""Files that are written whole or not at all."""

import errno
import os
import stat
from pathlib import Path

import pytest

from mmlinattn.utils.files import DRAFTS, whole_file

pytestmark = pytest.mark.modern


def test_whole(tmp_path, monkeypatch):
    path = tmp_path / 'new' / 'x.txt'
    steps = []
    for owner, name in ((os, 'fsync'), (Path, 'replace')):
        call = getattr(owner, name)

        def note(*args, name=name, call=call):
            steps.append(name)
            return call(*args)

        monkeypatch.setattr(owner, name, note)
    for text in ('one', 'two'):
        with whole_file(path) as draft:
            draft.write_text(text)
            assert draft.parent == path.parent
            assert not path.exists() or path.read_text() == 'one'
        assert path.read_text() == text and list(path.parent.iterdir()) == [path]
    # it is on the disk before it has its name, and then the name is
    assert steps == ['fsync', 'replace', 'fsync'] * 2


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
