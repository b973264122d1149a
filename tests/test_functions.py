"""What the commands do, as functions of a program."""

import io
from contextlib import redirect_stdout

import numpy as np
import pytest
from PIL import Image

from mmlinattn.own_config import write_config
from mmlinattn.own_data import Options, OwnData
from mmlinattn.runs import test as run_test
from mmlinattn.runs import train

pytestmark = pytest.mark.modern_full


@pytest.fixture
def photos(tmp_path):
    """A folder with dark and light photos."""
    rng = np.random.default_rng(0)
    for i, name in enumerate(('dark', 'light')):
        (tmp_path / 'photos' / name).mkdir(parents=True)
        for j in range(10):
            pixels = rng.integers(0, 60, (48, 48, 3)) + 190 * i
            path = tmp_path / 'photos' / name / f'{j}.png'
            Image.fromarray(pixels.astype(np.uint8)).save(path)
    return tmp_path / 'photos'


def test_from_a_folder(photos):
    data = OwnData.from_folder(str(photos), 'cls', classes=['light', 'dark'])
    assert data.classes == ['light', 'dark']
    same = OwnData.from_folder(Options(photos, 'cls', ['light', 'dark']))
    assert same.splits == data.splits
    with pytest.raises(ValueError, match="task must be one of .*, got 'boxes'"):
        OwnData.from_folder(photos, 'boxes')
    with pytest.raises(TypeError, match='colour'):
        OwnData.from_folder(photos, 'cls', colour=1)
    with pytest.raises(ValueError, match='has no data for --task det'):
        OwnData.from_folder(photos, 'det')


def test_from_a_folder_to_metrics(photos, tmp_path, monkeypatch, capsys):
    """Wrong input raises errors, and ends no program."""
    monkeypatch.chdir(tmp_path)
    data = OwnData.from_folder(photos, 'cls')
    with pytest.raises(ValueError, match=r'must end in \.py'):
        write_config(data, 'mine.txt')
    model = dict(backbone='softpp-micro-linear', epochs=1)
    config = write_config(data, 'mine.py', **model)
    assert 'photos: 16 for train' in config.source and config.notes
    with pytest.raises(FileExistsError, match='overwrite=True replaces it'):
        write_config(data, 'mine.py', **model)
    with pytest.raises(FileNotFoundError, match=r"config='none\.py'"):
        train('none.py')
    loaders = {
        f'{split}_dataloader.{key}': value
        for split in ('train', 'val', 'test')
        for key, value in dict(num_workers=0, persistent_workers=False).items()
    }
    with redirect_stdout(io.StringIO()):
        trained = train('mine.py', 'work', loaders)
    assert (
        trained.work_dir.samefile('work') and trained.checkpoint.parent.name == 'work'
    )
    names = [line.partition(':')[0] for line in trained.summary]
    assert {'score', 'checkpoint', 'test', 'predict', 'export'} <= {*names}
    with redirect_stdout(io.StringIO()):
        metrics = run_test('mine.py', trained.checkpoint, 'work', loaders)
    assert 0 <= metrics['accuracy/top1'] <= 100
    (tmp_path / 'seen').mkdir()
    (tmp_path / 'seen' / 'mine.txt').touch()
    with pytest.raises(FileExistsError, match='is not empty'):
        run_test('mine.py', trained.checkpoint, 'work', loaders, show_dir='seen')
    with pytest.raises(FileNotFoundError, match=r"checkpoint='none\.pth'"):
        run_test('mine.py', 'none.pth', 'work')
