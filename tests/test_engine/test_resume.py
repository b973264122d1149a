"""Which checkpoint a training goes on from."""

import os
import pickle
import zipfile

import pytest
import torch

from mmlinattn.engine import checkpoint_fault, find_checkpoint

pytestmark = pytest.mark.modern


@pytest.fixture
def save(tmp_path):
    """Writes a whole checkpoint, its time of writing in seconds, and returns its
    path."""

    def write(name, time=None):
        path = tmp_path / 'work' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(dict(state_dict=dict(weight=torch.full((64,), 1.5))), path)
        if time is not None:
            os.utime(path, (time, time))
        return path

    return write


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / 'work'
    folder.mkdir()
    return folder


def test_whole(save, work):
    assert checkpoint_fault(save('epoch_1.pth')) is None
    old = work / 'old.pth'
    torch.save(dict(a=torch.ones(2)), old, _use_new_zipfile_serialization=False)
    assert checkpoint_fault(old) is None
    # DeepSpeed's are folders
    assert checkpoint_fault(work) is None


@pytest.mark.parametrize('cut', [0.1, 0.5, 0.9, -1])
def test_truncated(save, cut):
    path = save('epoch_1.pth')
    data = path.read_bytes()
    path.write_bytes(data[: cut if cut == -1 else int(cut * len(data))])
    assert checkpoint_fault(path) == 'the file is truncated'


def test_damaged(save):
    path = save('epoch_1.pth')
    data = bytearray(path.read_bytes())
    weight = torch.full((64,), 1.5).numpy().tobytes()
    data[data.index(weight) + 100] ^= 1
    path.write_bytes(data)
    assert 'data/0 is damaged' in checkpoint_fault(path)


def test_no_checkpoint(work):
    path = work / 'epoch_1.pth'
    assert checkpoint_fault(path) == 'there is no such file'
    path.touch()
    assert checkpoint_fault(path) == 'the file is empty'
    path.write_bytes(b'incomplete')
    assert checkpoint_fault(path) == 'it is no checkpoint of PyTorch'
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('readme.txt', 'hello')
    assert checkpoint_fault(path) == 'it is no checkpoint of PyTorch'


class Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, 'w')


def test_runs_no_code(work):
    path, touched = work / 'epoch_1.pth', work / 'touched'
    torch.save(dict(state_dict=Touch(str(touched))), path)
    assert find_checkpoint(work) == (str(path), [])
    assert not touched.exists()
    # but this would
    with zipfile.ZipFile(path) as archive:
        pickle.loads(archive.read('epoch_1/data.pkl'))  # noqa: S301
    assert touched.exists()


def test_nothing_there(tmp_path, work):
    assert find_checkpoint(tmp_path / 'nowhere') == (None, [])
    (work / 'best_coco_bbox_mAP_epoch_3.pth').touch()
    (work / 'mine.pth').touch()
    assert find_checkpoint(work) == (None, [])


@pytest.mark.parametrize('last', [None, 'epoch_10.pth', 'elsewhere/epoch_10.pth'])
def test_newest(save, work, last):
    """The last checkpoint is lost, known, or was in another folder of that name."""
    for epoch in (9, 10, 8):
        newest = save(f'epoch_{epoch}.pth')
    newest = work / 'epoch_10.pth'
    if last:
        (work / 'last_checkpoint').write_text(str(work / last))
    assert find_checkpoint(work) == (str(newest), [])


@pytest.mark.parametrize('text, reason', [('', 'is empty'), ('a/b.pth', 'no such')])
def test_bad_last_checkpoint(save, work, text, reason):
    path = save('iter_2000.pth')
    (work / 'last_checkpoint').write_text(text)
    found, (skipped,) = find_checkpoint(work)
    assert found == str(path)
    assert 'last_checkpoint' in skipped and reason in skipped
    path.unlink()
    with pytest.raises(ValueError, match=f'no whole checkpoint.*{reason}'):
        find_checkpoint(work)


def test_relative_path(save, tmp_path, monkeypatch):
    path = save('epoch_1.pth')
    (tmp_path / 'work' / 'last_checkpoint').write_text('work/epoch_1.pth')
    monkeypatch.chdir(tmp_path)
    assert find_checkpoint('work') == (str(path), [])


def test_other_folder(save, work):
    """A hook with out_dir writes elsewhere."""
    paths = [save(f'../out/epoch_{epoch}.pth').resolve() for epoch in (1, 2)]
    (work / 'last_checkpoint').write_text(str(paths[1]))
    assert find_checkpoint(work) == (str(paths[1]), [])
    paths[1].write_bytes(paths[1].read_bytes()[:-100])
    found, (skipped,) = find_checkpoint(work)
    assert found == str(paths[0])
    assert skipped == f'{paths[1]}: the file is truncated'


def test_skips_broken_ones(save, work):
    whole = save('epoch_1.pth')
    save('epoch_2.pth').write_bytes(b'')
    save('epoch_3.pth').write_bytes(b'PK\x03\x04')
    (work / 'last_checkpoint').write_text(str(work / 'epoch_2.pth'))
    found, skipped = find_checkpoint(work)
    assert found == str(whole)
    assert skipped == [
        f'{work / "epoch_3.pth"}: the file is truncated',
        f'{work / "epoch_2.pth"}: the file is empty',
    ]
    whole.unlink()
    with pytest.raises(ValueError, match=r'epoch_3.*truncated.*epoch_2.*empty') as info:
        find_checkpoint(work)
    assert str(info.value).startswith(f"work_dir='{work}'")


def test_earlier_training(save, work):
    """Someone went on from epoch 3 in a folder where epoch 12 lay."""
    save('epoch_12.pth', time=100)
    last = save('epoch_4.pth', time=200)
    (work / 'last_checkpoint').write_text(str(last))
    found, (skipped,) = find_checkpoint(work)
    assert found == str(last)
    assert skipped.startswith(f'{work / "epoch_12.pth"}: it is older than')
    # killed between a checkpoint and the note of it
    newest = save('epoch_5.pth', time=300)
    assert find_checkpoint(work)[0] == str(newest)
