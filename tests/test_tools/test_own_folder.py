import pytest

from mmlinattn_tools.own_folder import read_record, remove, write_record


def test_new_folder_gets_a_record(tmp_path):
    folder = tmp_path / 'a' / 'b'
    assert read_record(folder, 'tool.json') == read_record(tmp_path, 'tool.json') == {}
    write_record(folder, 'tool.json', files=['x'])
    assert read_record(folder, 'tool.json') == dict(files=['x'])
    assert [path.name for path in folder.iterdir()] == ['tool.json']


@pytest.mark.parametrize(
    'name, text, message',
    [
        ('other.json', '', 'not written by this tool'),
        *(('tool.json', x, 'not the record') for x in ('', '{"files":', '[1]', '{}')),
    ],
)
def test_folder_of_others(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(FileExistsError, match=message):
        read_record(tmp_path, 'tool.json')


@pytest.mark.parametrize('name', ['../theirs', '..', '', 'link/x', 'a/../..'])
def test_nothing_outside_is_removed(tmp_path, name):
    for path in ('theirs', 'own/1', 'elsewhere/x'):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    own = tmp_path / 'own'
    (own / 'link').symlink_to(tmp_path / 'elsewhere')
    with pytest.raises(FileExistsError, match='is not inside'):
        remove(own, ['1', name])
    assert (tmp_path / 'theirs').exists() and (own / '1').exists()
    remove(own, ['1', 'link', 'gone'])
    assert list(own.iterdir()) == [] and (tmp_path / 'elsewhere/x').exists()
