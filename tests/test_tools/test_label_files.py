"""Label files that change after a config was made of them."""

import os

import pytest

from mmlinattn.cli.label_files import RECORD, changed_files, note_files


@pytest.fixture
def noted(tmp_path):
    files = [tmp_path / name for name in ('a.json', 'b.xml')]
    for path in files:
        path.write_text('labels')
    note_files(files, tmp_path / 'lists')
    return tmp_path / 'lists', *files


def test_files_that_change(noted):
    folder, one, other = noted
    assert changed_files(folder) == []
    os.utime(one, (1, 1))  # as a copy on another machine
    assert changed_files(folder) == []
    one.write_text('others')  # of the same size
    os.utime(one, (2, 2))
    assert changed_files(folder) == [str(one)]
    other.unlink()
    assert changed_files(folder) == [str(one), str(other)]


@pytest.mark.parametrize('content', [None, '{}', '[]', '{"label_', '\x00'])
def test_records_of_others(tmp_path, content):
    if content is not None:
        (tmp_path / RECORD).write_text(content)
    assert changed_files(tmp_path) == []
