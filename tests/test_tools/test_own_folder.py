import json

import pytest

from mmlinattn_tools.own_folder import OwnFolder


def write(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_new_folder_gets_a_record(tmp_path):
    folder = OwnFolder(tmp_path / 'a' / 'b', 'tool.json')
    assert folder.read() is None
    folder.write(dict(files=['x']))
    assert OwnFolder(tmp_path / 'a' / 'b', 'tool.json').read() == dict(files=['x'])
    assert [path.name for path in folder.path.iterdir()] == ['tool.json']


def test_empty_folder_is_free(tmp_path):
    assert OwnFolder(tmp_path, 'tool.json').read() is None


@pytest.mark.parametrize('name', ['x', 'other.json', '.hidden', 'sub/x'])
def test_folder_of_others(tmp_path, name):
    write(tmp_path, name)
    with pytest.raises(FileExistsError, match='not written by this tool'):
        OwnFolder(tmp_path, 'tool.json').read()


def test_file_is_no_folder(tmp_path):
    write(tmp_path, 'x')
    with pytest.raises(FileExistsError, match='not an empty folder'):
        OwnFolder(tmp_path / 'x', 'tool.json').read()


@pytest.mark.parametrize('text', ['', '{"files":', '[1]', '"x"', '\xff'])
def test_damaged_record(tmp_path, text):
    (tmp_path / 'tool.json').write_bytes(text.encode('latin-1'))
    with pytest.raises(FileExistsError, match=r'tool\.json is not the record'):
        OwnFolder(tmp_path, 'tool.json').read()


def test_only_what_is_named_is_removed(tmp_path):
    write(tmp_path, 'a/b/1', 'a/b/2', 'a/c/1', 'd/1', 'd/e/1', 'mine')
    folder = OwnFolder(tmp_path, 'tool.json')
    assert folder.missing(['a/b/1', 'a/b/3', 'd']) == ['a/b/3', 'd']
    folder.remove(['a/b/1', 'a/c/1', 'd', 'never written'])
    found = {str(x.relative_to(tmp_path)) for x in tmp_path.rglob('*') if x.is_file()}
    assert found == {'a/b/2', 'mine'}
    assert not (tmp_path / 'a' / 'c').exists()


def test_link_is_removed_and_not_what_it_leads_to(tmp_path):
    write(tmp_path, 'theirs/x')
    (tmp_path / 'own').mkdir()
    (tmp_path / 'own' / 'data').symlink_to(tmp_path / 'theirs')
    folder = OwnFolder(tmp_path / 'own', 'tool.json')
    with pytest.raises(FileExistsError, match='is not inside'):
        folder.remove(['data/x'])
    folder.remove(['data'])
    assert not (tmp_path / 'own' / 'data').is_symlink()
    assert (tmp_path / 'theirs' / 'x').read_text() == 'theirs/x'


@pytest.mark.parametrize('name', ['../theirs', '..', '', '/etc/hostname', 'a/../..'])
def test_nothing_outside_is_removed(tmp_path, name):
    write(tmp_path, 'theirs', 'own/1')
    with pytest.raises(FileExistsError, match='is not inside'):
        OwnFolder(tmp_path / 'own', 'tool.json').remove(['1', name])
    assert (tmp_path / 'theirs').exists() and (tmp_path / 'own' / '1').exists()


def test_record_is_plain_json(tmp_path):
    OwnFolder(tmp_path, 'tool.json').write(dict(a=(1, 2)))
    assert json.loads((tmp_path / 'tool.json').read_text()) == dict(a=[1, 2])
