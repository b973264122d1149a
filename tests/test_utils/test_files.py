"""Files that are written whole or not at all."""

import os
from pathlib import Path

import pytest

from mmlinattn.utils.files import DRAFTS, whole_file


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
