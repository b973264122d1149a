"""Errors of docs/faq.md in a user's config, and the page's advice."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mmengine.registry import MODELS, DefaultScope

from mmlinattn.utils import load_config

PAGE = (Path(__file__).resolve().parents[1] / 'docs' / 'faq.md').read_text('utf-8')
TINY = dict(
    type='mmlinattn.SOFTPlusPlus',
    arch=dict(embed_dims=[8, 16, 24, 32], depths=[1] * 4, num_heads=[1, 2, 3, 4]),
)


def check_quote(title, printed):
    """Checks that the page quotes it; an ellipsis stands for text of some versions."""
    pattern = rf'^### {re.escape(title)}\n.*?^```text\n(.*?)^```'
    quoted = re.search(pattern, PAGE, re.M | re.S)[1]
    for part in ' '.join(quoted.split()).split('...'):
        assert part.strip() in ' '.join(printed.split())


def check_error(title, call, *args):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(*args)
    check_quote(title, f'{type(caught.value).__name__}: {caught.value}')


def build(cfg):
    with DefaultScope.overwrite_default_scope('mmdet'):
        return MODELS.build(cfg)


def retinanet(tmp_path, **backbone):
    """The model of mmdet's config with settings of its backbone replaced."""
    path = tmp_path / 'config.py'
    base = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'
    path.write_text(f'_base_ = {base!r}\nmodel = dict(backbone={backbone})\n')
    return load_config(str(path)).model


def test_type_without_prefix():
    cfg = dict(TINY, type='SOFTPlusPlus')
    check_error('A backbone is not in the registry', build, cfg)


def test_own_module_is_not_imported():
    cfg = dict(TINY, attention=dict(type='mmlinattn.MyAttention'))
    check_error('A module of your own is not in the registry', build, cfg)


def test_settings_of_a_resnet_are_inherited(tmp_path):
    cfg = retinanet(tmp_path, type='mmlinattn.SOFTPlusPlus', arch='tiny')
    check_error('The backbone has no such argument', build, cfg.backbone)


def test_channels_of_a_resnet_are_inherited(tmp_path):
    cfg = retinanet(tmp_path, _delete_=True, **TINY)
    x = torch.rand(1, 3, 64, 64)
    check_error('The neck expects other channels', build(cfg).extract_feat, x)
    cfg.neck.update(in_channels=[8, 16, 24, 32])
    build(cfg).extract_feat(x)


def test_prefix_of_configs(tmp_path):
    path = tmp_path / 'mine.py'
    path.write_text("_base_ = 'mmlinattn::soft/retinanet_softpp-t_fpn_1x_coco.py'\n")
    code = f'from mmengine.config import Config; Config.fromfile({str(path)!r})'
    command = [sys.executable, '-c', code]
    refused = subprocess.run(command, capture_output=True, text=True)
    check_quote('`mmlinattn::` is not known', refused.stderr)
    command[-1] = f'import mmlinattn; mmlinattn.register(); {code}'
    subprocess.run(command, check=True)
