import shutil
import subprocess
import zipfile

import pytest
from loading import ROOT

pytestmark = pytest.mark.skipif(not shutil.which('unzip'), reason='needs unzip')

SCRIPT = ROOT / 'tools/misc/unpack_coco2017.sh'
CONTENTS = {
    'annotations_trainval2017.zip': 'annotations/instances_val2017.json',
    'val2017.zip': 'val2017/1.jpg',
    'train2017.zip': 'train2017/2.jpg',
}


def test_archives_are_unpacked(tmp_path):
    folder = tmp_path / 'downloads' / 'raw'
    folder.mkdir(parents=True)
    out = tmp_path / 'coco'
    command = ['bash', SCRIPT, folder.parent, out]
    for archive, name in CONTENTS.items():
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 2 and not out.exists()
        assert 'error: there is no ' in done.stderr
        with zipfile.ZipFile(folder / archive, 'w') as file:
            file.writestr(name, archive)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ''
    assert {x: (out / name).read_text() for x, name in CONTENTS.items()} == {
        x: x for x in CONTENTS
    }
