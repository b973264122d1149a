from contextlib import nullcontext

import pytest

from mmlinattn.utils import check_file, load_config


def test_check_file(tmp_path):
    path = tmp_path / 'weights.pth'
    with pytest.raises(FileNotFoundError, match="config='.*weights.pth'"):
        load_config(str(path))
    with pytest.raises(FileNotFoundError, match="pretrained='.*weights.pth'"):
        check_file('pretrained', str(path))
    path.touch()
    check_file('pretrained', str(path))
    check_file('pretrained', 's3://bucket/weights.pth')


def test_scope_that_mmengine_would_pass_on(tmp_path):
    """MMEngine passes all of ``collate_fn`` to the function, which fails."""
    child = tmp_path / 'child.py'
    child.write_text("_base_ = 'mmpretrain::_base_/datasets/imagenet_bs32_simclr.py'\n")
    loader = load_config(str(child)).train_dataloader
    assert loader.collate_fn == dict(type='default_collate')
    assert loader.sampler['_scope_'] == 'mmpretrain'


CONFIG = """
train_dataloader = dict(batch_size=2)
model = dict(test_cfg=dict(rcnn=dict(score_thr=0.05)), backbone=dict(type='X'))
hooks = [dict(interval=10, by='iter')]
load_from, resume, scale = None, False, 512
"""


@pytest.mark.parametrize(
    'key, value, refused, warned',
    [
        ('hooks.0.interval', '1x', "'1x' is text, not a number as 10", ''),
        ('scale', '512.pth', "'512.pth' is text", ''),
        ('scale', 'dynamic', '', ''),
        ('scale', 3.5, '', ''),
        ('resume', '3.pth', '', ''),
        ('load_from', '3.pth', '', ''),
        ('hooks.0.by', '3d', '', ''),
        ('model.test_cfg.rcnn.score_th', 1, '', "mean 'score_thr'"),
        ('model.test_cfg.rcn.score_thr', 1, '', "mean 'rcnn'"),
        ('train_dataloader.batchsize', 1, '', "mean 'batch_size'"),
        ('train_dataloader.num_workers', 1, '', ''),
        ('model.backbone.typ', 1, '', ''),  # its class knows
    ],
)
def test_overrides(tmp_path, key, value, refused, warned):
    path, lines = tmp_path / 'x.py', []
    path.write_text(CONFIG)
    refusal = pytest.raises(ValueError, match=f'--cfg-options {key}=.*{refused}')
    with refusal if refused else nullcontext():
        load_config(str(path), {key: value}, lines.append)
    assert len(lines) == bool(warned) and warned in ''.join(lines)
