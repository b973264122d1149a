"""The checkpoint that a training resumes from."""

import pytest

from mmlinattn.engine import find_checkpoint

pytestmark = pytest.mark.openmmlab


# what is in the folder, what last_checkpoint names, and what is found
@pytest.mark.parametrize(
    'names, last, expected',
    [
        ('', None, None),
        ('best_coco_bbox_mAP_epoch_3.pth mine.pth', None, None),
        ('epoch_9.pth epoch_10.pth epoch_8.pth', None, 'work/epoch_10.pth'),
        ('iter_2000.pth', '', 'work/iter_2000.pth'),
        # a new training began in the folder
        ('epoch_12.pth epoch_4.pth', 'work/epoch_4.pth', 'work/epoch_4.pth'),
        # the folder was moved or copied
        ('epoch_1.pth', '/gone/epoch_1.pth', 'work/epoch_1.pth'),
        # the hook has an out_dir
        ('', '/out/work/epoch_1.pth', '/out/work/epoch_1.pth'),
    ],
)
def test_newest(tmp_path, monkeypatch, names, last, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'work').mkdir()
    for name in names.split():
        (tmp_path / 'work' / name).touch()
    if last is not None:
        (tmp_path / 'work/last_checkpoint').write_text(last)
    assert find_checkpoint('work') == expected
