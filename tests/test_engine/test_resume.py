"""The checkpoint that a training resumes from."""

import itertools
import os
import pickle
import re
import shutil
import zipfile

import pytest
import torch
from mmengine.config import Config

from mmlinattn.engine import check_resume, checkpoint_fault, find_checkpoint

pytestmark = pytest.mark.modern


@pytest.fixture
def save(tmp_path):
    """Writes a whole checkpoint, as one hook or the other does, and returns its
    path. Each is older than the one before, as if the clock went back."""
    times = itertools.count(1_000_000, -1000)

    def write(name):
        path = tmp_path / 'work' / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (epoch,) = re.findall(r'\d+', path.stem)[-1:] or [0]
        content = dict(
            meta=dict(epoch=int(epoch), iter=100 * int(epoch)),
            state_dict=dict(weight=torch.full((64,), 1.5)),
        )
        torch.save(content, path)
        os.utime(path, (next(times),) * 2)
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
    assert checkpoint_fault(path) == 'it is not a PyTorch checkpoint'
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('readme.txt', 'hello')
    assert checkpoint_fault(path) == 'it is not a PyTorch checkpoint'


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


@pytest.mark.parametrize('last', [None, 'work/epoch_10.pth', '/gone/epoch_10.pth'])
def test_newest(save, work, monkeypatch, last):
    """The last checkpoint is lost, known, or was in another folder."""
    for epoch in (9, 10, 8):
        save(f'epoch_{epoch}.pth')
    if last:
        (work / 'last_checkpoint').write_text(last)
    monkeypatch.chdir(work.parent)
    assert find_checkpoint('work') == (str(work / 'epoch_10.pth'), [])


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


def test_skips_broken_ones(save, work):
    whole = save('epoch_1.pth')
    save('epoch_2.pth').write_bytes(b'')
    save('epoch_3.pth').write_bytes(b'PK\x03\x04')
    (work / 'last_checkpoint').write_text(str(work / 'epoch_2.pth'))
    found, skipped = find_checkpoint(work)
    assert found == str(whole)
    assert skipped == [
        f'{work / "epoch_3.pth"}: last_checkpoint names an earlier one, '
        f'{work / "epoch_2.pth"}',
        f'{work / "epoch_2.pth"}: the file is empty',
    ]
    whole.unlink()
    with pytest.raises(ValueError, match=r'epoch_3.*epoch_2.*empty') as info:
        find_checkpoint(work)
    assert str(info.value).startswith(f"work_dir='{work}'")


def test_earlier_training(save, work):
    """A new training began in a folder with an epoch 12, and its file is torn."""
    save('epoch_12.pth')
    before, last = save('epoch_3.pth'), save('epoch_4.pth')
    (work / 'last_checkpoint').write_text(str(last))
    found, (skipped,) = find_checkpoint(work)
    assert found == str(last)
    assert skipped == (
        f'{work / "epoch_12.pth"}: last_checkpoint names an earlier one, {last}'
    )
    last.write_bytes(last.read_bytes()[:-100])
    assert find_checkpoint(work)[0] == str(before)


def test_copied_folder(save, work, tmp_path):
    """The original continues elsewhere."""
    (work / 'last_checkpoint').write_text(str(save('epoch_1.pth')))
    shutil.copytree(work, tmp_path / 'copy')
    (work / 'last_checkpoint').write_text(str(save('epoch_2.pth')))
    expected = str(tmp_path / 'copy' / 'epoch_1.pth'), []
    assert find_checkpoint(tmp_path / 'copy') == expected


@pytest.mark.parametrize('named', [False, True])
@pytest.mark.parametrize('template', ['ck_{}.pth', '{:05d}_of_mine.pth'])
def test_other_folder_and_names(save, work, tmp_path, named, template):
    """A hook has out_dir and filename_tmpl."""
    paths = [save(f'../out/work/{template.format(x)}').resolve() for x in (1, 2)]
    if named:
        (work / 'last_checkpoint').write_text(str(paths[1]))
    arguments = work, str(tmp_path / 'out'), template
    paths[1].write_bytes(b'PK')
    found, _ = find_checkpoint(*arguments)
    assert found == str(paths[0])


# --- checkpoints that a training can't resume from


def config(**train_cfg):
    return Config(dict(load_from='x.pth', train_cfg=train_cfg))


SAVED = dict(meta=dict(epoch=1, iter=10), optimizer={})


@pytest.mark.parametrize('train_cfg', [{}, dict(max_iters=10), dict(max_epochs=1)])
def test_can_go_on(train_cfg):
    check_resume(SAVED, config(**train_cfg))


@pytest.mark.parametrize(
    'saved, message',
    [
        (dict(meta=SAVED['meta']), 'it has no training state'),
        (dict(SAVED, meta=None), 'its meta.epoch must be a number from 0, got None'),
        (dict(SAVED, meta=dict(epoch=1, iter='1')), "its meta.iter .*got '1'"),
        (dict(SAVED, meta=dict(epoch=-1, iter=1)), 'its meta.epoch .*got -1'),
        (dict(SAVED, meta=dict(epoch=1, iter=99)), 'iter 99.*train_cfg.max_iters=20'),
    ],
)
def test_can_not_go_on(saved, message):
    with pytest.raises(ValueError, match=message):
        check_resume(saved, config(max_iters=20))
