import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not shutil.which('unzip'), reason='needs unzip')

SCRIPT = Path(__file__).parents[2] / 'tools/misc/unpack_coco2017.sh'
CONTENTS = {
    'annotations_trainval2017.zip': 'annotations/instances_val2017.json',
    'val2017.zip': 'val2017/1.jpg',
    'train2017.zip': 'train2017/2.jpg',
}


@pytest.fixture
def downloads(tmp_path):
    folder = tmp_path / 'downloads' / 'raw'
    folder.mkdir(parents=True)
    for archive, name in CONTENTS.items():
        with zipfile.ZipFile(folder / archive, 'w') as file:
            file.writestr(name, archive)
    return folder.parent


def run(*args):
    command = ['bash', SCRIPT, *args]
    return subprocess.run(command, capture_output=True, text=True)


def test_archives_are_unpacked(downloads, tmp_path):
    mine = tmp_path / 'coco' / 'val2017' / '1.jpg'
    mine.parent.mkdir(parents=True)
    mine.write_text('mine')
    done = run(downloads, tmp_path / 'coco')
    assert done.returncode == 0 and done.stderr == ''
    found = {name: (tmp_path / 'coco' / name).read_text() for name in CONTENTS.values()}
    assert found.pop('val2017/1.jpg') == 'mine'
    assert set(found.values()) == {'annotations_trainval2017.zip', 'train2017.zip'}


def test_missing_archive(downloads, tmp_path):
    (downloads / 'raw' / 'train2017.zip').unlink()
    done = run(downloads, tmp_path / 'coco')
    assert done.returncode == 2
    assert done.stderr == (
        f'unpack_coco2017.sh: error: there is no train2017.zip in {downloads}\n'
    )
    assert not (tmp_path / 'coco').exists()


def test_file_where_the_folder_should_be(downloads, tmp_path):
    (tmp_path / 'coco').touch()
    done = run(downloads, tmp_path / 'coco')
    assert done.returncode == 2 and 'is a file, not a folder' in done.stderr


def test_no_arguments(tmp_path):
    done = run(tmp_path / 'none', tmp_path)
    assert done.returncode == 2 and done.stderr.startswith('usage: ')
