"""Right configs train and are tested by tools/train.py and tools/test.py.

They are configs of the three libraries for each of their tasks, on their stock
schedules, and unusual ones; test_preflight.py has more of these, in parts. All are made
small: a few images of 48 x 48 pixels, one or two iterations, narrow models.
"""

import gc
import re
import sys
from pathlib import Path

import pytest
import torch
from loading import load_module
from mmengine.visualization import Visualizer
from small_configs import THIN_HEADS, options_of, write_data

from mmlinattn.utils import load_config

START = (
    THIN_HEADS
    + """
alone = dict(
    type='mmlinattn.SOFTPlusPlus',
    arch=dict(embed_dims=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_heads=[1, 2, 3, 4]),
)
tiny = dict(alone, _delete_=True)
fpn = dict(in_channels=[8, 16, 24, 32], out_channels=32)
last = dict(in_channels=32, in_index=3, channels=8)
third = dict(in_channels=24, in_index=2, channels=8)
"""
)
BASES = dict(
    classifier=(
        'mmpretrain::resnet/resnet18_8xb32_in1k.py',
        'model = dict(backbone=tiny, head=dict(in_channels=32))\n',
    ),
    detector=(
        'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py',
        'model = dict(backbone=tiny, neck=fpn, bbox_head=thin)\n',
    ),
    segmentor=(
        'mmseg::fcn/fcn_r50-d8_4xb4-80k_ade20k-512x512.py',
        'model = dict(pretrained=None, backbone=tiny, decode_head=last, '
        'auxiliary_head=third)\n',
    ),
)
HEADING = re.compile(r'^\[(.+?)\] (\S+)(?: ! (.+))?$', re.M)
_, *GROUPS = HEADING.split(Path(__file__).with_name('right_configs.txt').read_text())
CASES = {name: rest for name, *rest in zip(*[iter(GROUPS)] * 4)}


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    """The folder ``data`` of the libraries' configs."""
    folder = tmp_path_factory.mktemp('data')
    write_data(folder)
    return folder


@pytest.fixture
def use(data, tmp_path, monkeypatch, capsys):
    """Uses a tool in a folder with data, and returns its stderr."""
    gc.freeze()  # as quick_collections does: the libraries are imported only now
    (tmp_path / 'data').symlink_to(data)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')

    def call(tool, *args):
        monkeypatch.setattr(sys, 'argv', [f'{tool}.py', *map(str, args)])
        capsys.readouterr()
        # a visualizer of another run, with its folder
        for kind in (Visualizer, *Visualizer.__subclasses__()):
            kind._instance_dict.clear()
        load_module(f'tools/{tool}.py').main()
        lines = capsys.readouterr().err.splitlines()
        return [x for x in lines if x.startswith(f'{tool}.py')]

    yield call
    torch.use_deterministic_algorithms(False)


def small(base, lines):
    """Writes a config that inherits a base, and returns its path and options."""
    base, more = BASES.get(base, (base, ''))
    path = Path('mine.py')
    path.write_text(f'_base_ = {base!r}\n{START}{more}{lines}')
    if base == 'nothing':
        path.write_text(lines)
    cfg = load_config(str(path))
    return [path, '--cfg-options', *(f'{k}={x}' for k, x in options_of(cfg).items())]


QUICK = ('one stage', 'instances', 'segmentor', 'classifier')
QUICK += ('fewer names than outputs', 'FlexibleRunner', 'a training alone')


@pytest.mark.parametrize(
    'name',
    [pytest.param(x, marks=() if x in QUICK else pytest.mark.full) for x in CASES],
)
def test_right_config(use, name):
    base, words, lines = CASES[name]
    path, *options = small(base, lines)
    said = use('train', path, *options, '--work-dir', 'work')
    checkpoint = Path('work/last_checkpoint').read_text()
    # models that learn without labels have no test
    if load_config(str(path)).get('test_cfg') is not None:
        said += use('test', path, checkpoint, *options, '--work-dir', 'work')
        if name in ('one stage', 'classifier'):
            said += use('test', path, checkpoint, *options, '--tta')
    words = words.split('; ') if words else []
    for word in words:
        assert any(word in line for line in said)
    # runs of two steps, on schedules of weeks
    words += ['--resume', 'would have no effect', 'param_scheduler does not fit']
    assert not [line for line in said if not any(word in line for word in words)]
