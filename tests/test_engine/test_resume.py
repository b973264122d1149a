"""The checkpoint that a training resumes from."""

import os
import shutil
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from mmlinattn.engine import check_resume, checkpoint_fault, find_checkpoint

pytestmark = pytest.mark.modern


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / 'work'
    folder.mkdir()
    return folder


@pytest.fixture
def save(work):
    """Writes a whole checkpoint, and returns its path."""

    def write(name):
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save(dict(weight=torch.full((64,), 1.5)), path)
        return path

    return write


class Touch:
    """Pickled, it writes a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, 'w')


def test_whole(save, work):
    assert checkpoint_fault(save('epoch_1.pth')) is None
    torch.save(Touch(str(work / 'touched')), work / 'code.pth')
    assert checkpoint_fault(work / 'code.pth') is None
    assert not (work / 'touched').exists()
    old = work / 'old.pth'
    torch.save(dict(a=torch.ones(2)), old, _use_new_zipfile_serialization=False)
    assert checkpoint_fault(old) is None
    assert checkpoint_fault(work) is None  # DeepSpeed's are folders


def damage(data):
    weight = torch.full((64,), 1.5).numpy().tobytes()
    return data.replace(weight, weight[:-1] + b'\0')


@pytest.mark.parametrize(
    'change, fault',
    [
        (lambda data: data[:100], 'the file is cut off'),
        (lambda data: data[:-1], 'the file is cut off'),
        (lambda data: b'text', 'the file is cut off'),
        (lambda data: b'', 'the file is empty'),
        (damage, 'its entry epoch_1/data/0 is damaged'),
    ],
)
def test_broken(save, change, fault):
    path = save('epoch_1.pth')
    path.write_bytes(change(path.read_bytes()))
    assert checkpoint_fault(path) == fault
    path.unlink()
    assert checkpoint_fault(path) == 'there is no such file'


# what is in the folder, what last_checkpoint names, what is found and how many are not
@pytest.mark.parametrize(
    'names, last, expected, skips',
    [
        ('', None, None, 0),
        ('best_coco_bbox_mAP_epoch_3 mine', None, None, 0),
        ('epoch_9 epoch_10 epoch_8', None, 'epoch_10', 0),
        ('epoch_9 epoch_10 epoch_8', 'work/epoch_10.pth', 'epoch_10', 0),
        ('epoch_9 epoch_10 epoch_8', '/gone/epoch_10.pth', 'epoch_10', 0),
        ('iter_2000', '', 'iter_2000', 0),
        ('iter_2000', 'a/iter_3000.pth', 'iter_2000', 1),
        # a new training began in the folder
        ('epoch_12 epoch_3 epoch_4', 'work/epoch_4.pth', 'epoch_4', 1),
        ('epoch_1 broken_2', 'epoch_2.pth', 'epoch_1', 1),
        ('epoch_1 broken_2', None, 'epoch_1', 1),
    ],
)
def test_newest(save, work, monkeypatch, names, last, expected, skips):
    for name in names.split():
        path = save(f'{name.replace("broken", "epoch")}.pth')
        if name.startswith('broken'):
            path.write_bytes(b'PK\x03\x04')
    if last is not None:
        (work / 'last_checkpoint').write_text(last)
    monkeypatch.chdir(work.parent)
    found, skipped = find_checkpoint('work')
    assert found == (expected and str(work / f'{expected}.pth'))
    assert len(skipped) == skips


def test_none_is_whole(save, work):
    save('epoch_2.pth').write_bytes(b'')
    (work / 'last_checkpoint').write_text('epoch_3.pth')
    with pytest.raises(ValueError, match=r'epoch_3.*no such.*epoch_2.*empty') as info:
        find_checkpoint(work)
    assert str(info.value).startswith(f"work_dir='{work}' has no whole checkpoint")


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
    paths = [save(f'../out/work/{template.format(x)}') for x in (1, 2)]
    paths = [Path(os.path.abspath(path)) for path in paths]
    if named:
        (work / 'last_checkpoint').write_text(str(paths[1]))
    paths[1].write_bytes(b'PK')
    found, _ = find_checkpoint(work, str(tmp_path / 'out'), template)
    assert found == str(paths[0])


SAVED = dict(meta=dict(epoch=1, iter=10), optimizer={})


@pytest.mark.parametrize(
    'saved, train_cfg, message',
    [
        (SAVED, {}, None),
        (SAVED, dict(max_iters=10), None),
        (SAVED, dict(max_epochs=1), None),
        (dict(meta=SAVED['meta']), {}, 'it has no training state'),
        (dict(SAVED, meta=None), {}, 'it has no training state'),
        (SAVED, dict(max_iters=9), 'iter 10.*train_cfg.max_iters=9'),
    ],
)
def test_state_of_a_training(saved, train_cfg, message):
    cfg = Config(dict(load_from='x.pth', train_cfg=train_cfg))
    if message is None:
        check_resume(saved, cfg)
    else:
        with pytest.raises(ValueError, match=message):
            check_resume(saved, cfg)
