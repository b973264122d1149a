import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from mmlinattn.analysis import count_flops
from mmlinattn.models import SOFT, SOFTPlusPlus
from mmlinattn.utils import load_config

pytestmark = [pytest.mark.modern, pytest.mark.modern_full]
ROOT = Path(__file__).parents[2]
TOOL = ROOT / 'tools/analysis_tools/get_flops.py'
CONFIGS = ROOT / 'configs/soft'
CLASSIFIER = CONFIGS / 'soft-t_in1k.py'
RETINANET = CONFIGS / 'retinanet_softpp-t_fpn_1x_coco.py'
MASK_RCNN = CONFIGS / 'mask-rcnn_softpp-t_fpn_1x_coco.py'
UPERNET = CONFIGS / 'upernet_softpp-t_1x_ade20k-512x512.py'


def load_module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


get_flops = load_module(TOOL)


@pytest.fixture
def report(tmp_path):
    """Runs the tool in this process and reads what it wrote."""

    def run(config, *options):
        out = tmp_path / 'reports/flops.json'
        get_flops.main([str(config), *map(str, options), '--out', str(out)])
        return json.loads(out.read_text())

    return run


def backbone_macs(backbone, height, width):
    images = torch.zeros(1, 3, height, width, device='meta')
    return count_flops(backbone.to('meta'), images).total()


def check_sums(report):
    for key in ('params', 'macs', 'macs_without_softmax_attention'):
        assert sum(part[key] for part in report['parts'].values()) == report[key]
    assert sum(report['kinds'].values()) == report['macs']
    less = report['macs'] - report['macs_without_softmax_attention']
    assert less == report['kinds']['softmax_attention'] > 0


def backbone_part(report):
    return sum(
        part['macs']
        for name, part in report['parts'].items()
        if name.startswith('backbone.')
    )


def test_classifier(report, capsys):
    pytest.importorskip('mmpretrain')
    found = report(CLASSIFIER, '--shape', 64)
    check_sums(found)
    assert found['shape'] == [64, 64]
    assert backbone_part(found) == backbone_macs(
        SOFT('tiny', out_type='cls_token'), 64, 64
    )
    assert found['parts']['head']['macs'] == 512 * 1000
    # that of the paper
    assert f'{found["params"] / 1e6:.2f}' == '13.07'
    printed = capsys.readouterr().out
    assert 'one image of 64 x 64' in printed
    assert f'all {found["macs"] / 1e9:.3f} G' in printed
    assert '13.07' in printed


ELFATT = ROOT / 'configs/elfatt'


@pytest.mark.parametrize(
    'config, options, macs, without',
    [
        ('cswin-t-elfatt_in1k.py', [], '4.44', '4.13'),
        ('cswin-t-elfatt_in1k.py', ['block_sizes=196'], '4.56', '4.13'),
        ('cswin-t-elfatt_in1k.py', ['block_sizes=(49,49,196)'], '4.44', '4.13'),
        (
            'cswin-t-elfatt_in1k.py',
            ['block_sizes=None', 'attention=local'],
            '4.36',
            '4.09',
        ),
        ('swin-t-elfatt_in1k.py', [], '4.99', '4.67'),
        ('swin-t-elfatt_in1k.py', ['attention=global'], '8.81', '4.38'),
        ('swin-t-elfatt_in1k.py', ['attention=efficient'], '4.55', '4.45'),
    ],
)
def test_with_and_without_softmax_attention(
    config, options, macs, without, report, capsys
):
    """Both as the ELFATT paper prints them, models being chosen by options."""
    pytest.importorskip('mmpretrain')
    if options:
        options = ['--cfg-options', *(f'model.backbone.{x}' for x in options)]
    found = report(ELFATT / config, *options)
    check_sums(found)
    assert f'{found["macs"] / 1e9:.2f}' == macs
    assert f'{found["macs_without_softmax_attention"] / 1e9:.2f}' == without
    assert (
        f'without softmax-attention products '
        f'{found["macs_without_softmax_attention"] / 1e9:.3f} G'
    ) in capsys.readouterr().out


def test_segmentor(report):
    pytest.importorskip('mmseg')
    found = report(UPERNET, '--shape', 64, 96)
    check_sums(found)
    assert found['shape'] == [64, 96]
    assert backbone_part(found) == backbone_macs(SOFTPlusPlus('tiny'), 64, 96)
    auxiliary = found['parts']['auxiliary_head']
    assert (auxiliary['macs'], auxiliary['params'] > 0) == (0, True)
    assert found['parts']['decode_head']['macs'] > 0


def test_one_stage_detector(report):
    pytest.importorskip('mmdet')
    found = report(RETINANET, '--shape', 128)
    check_sums(found)
    assert backbone_part(found) == backbone_macs(SOFTPlusPlus('tiny'), 128, 128)
    # 4 convolutions and an output for classes and boxes, 9 anchors, P3 to P7
    positions = 16**2 + 8**2 + 4**2 + 2**2 + 1
    head = 9 * 256 * (2 * 4 * 256 + 9 * 80 + 9 * 4) * positions
    assert found['parts']['bbox_head']['macs'] == head


def test_two_stage_detector(report):
    """The RoI head sees as many proposals as the RPN may keep, at any size."""
    pytest.importorskip('mmdet')
    num = 7
    found = report(
        MASK_RCNN,
        '--shape',
        64,
        '--cfg-options',
        f'model.test_cfg.rpn.max_per_img={num}',
    )
    check_sums(found)
    assert backbone_part(found) == backbone_macs(SOFTPlusPlus('tiny'), 64, 64)
    positions = 16**2 + 8**2 + 4**2 + 2**2 + 1
    rpn = (9 * 256 * 256 + 256 * 3 * (1 + 4)) * positions
    assert found['parts']['rpn_head']['macs'] == rpn
    box = 256 * 7 * 7 * 1024 + 1024 * 1024 + 1024 * (81 + 4 * 80)
    mask = 14**2 * 256 * 256 * (4 * 9 + 4) + 28**2 * 256 * 80
    assert found['parts']['roi_head']['macs'] == num * (box + mask)


def test_foreign_config(report, tmp_path):
    pytest.importorskip('mmdet')
    config = tmp_path / 'theirs.py'
    config.write_text(
        "_base_ = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'\n"
        'model = dict(\n'
        "    backbone=dict(_delete_=True, type='mmlinattn.SOFT', arch='tiny'),\n"
        '    neck=dict(in_channels=[64, 128, 320, 512]))\n'
    )
    found = report(config, '--shape', 64)
    check_sums(found)
    assert backbone_part(found) == backbone_macs(SOFT('tiny'), 64, 64)


def test_backbone_only(report):
    pytest.importorskip('mmpretrain')
    found = report(
        CLASSIFIER,
        '--shape',
        64,
        96,
        '--backbone-only',
        '--cfg-options',
        'model.backbone.out_type=featmap',
        'model.backbone.arch=small',
    )
    check_sums(found)
    assert found['macs'] == backbone_macs(SOFT('small'), 64, 96)
    assert 'head' not in found['parts']


@pytest.mark.parametrize(
    'config, library, shape',
    [
        (CLASSIFIER, 'mmpretrain', (224, 224)),
        (RETINANET, 'mmdet', (800, 1344)),
        (CONFIGS / 'mask-rcnn_softpp-t_fpn_1x_cityscapes.py', 'mmdet', (1024, 2048)),
        (UPERNET, 'mmseg', (512, 2048)),
    ],
)
def test_default_shape(config, library, shape):
    pytest.importorskip(library)
    assert get_flops.default_shape(load_config(str(config))) == shape


class NeedsValues(nn.Module):
    """A model that can't run on the meta device."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 1)

    def forward(self, x):
        x = self.conv(x)
        return x if x.sum().item() > 0 else self.conv(x[:, :3])


def test_falls_back_to_the_cpu():
    model = NeedsValues()
    nn.init.zeros_(model.conv.bias)
    counted = get_flops.count(model, (5, 7))
    assert counted.total() == 2 * 5 * 7 * 3 * 4
    assert next(model.parameters()).device.type == 'cpu'


def error_of(options, capsys):
    """The one line on stderr that the tool ends with."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        get_flops.main([str(option) for option in options])
    lines = capsys.readouterr().err.splitlines()
    assert stop.value.code == 2 and len(lines) == 1
    return lines[0]


@pytest.mark.parametrize(
    'options, says',
    [
        (['missing.py'], 'missing.py'),
        ([Path(__file__).with_suffix('.jpg')], 'test_get_flops.jpg'),
        ([CONFIGS], str(CONFIGS)),
        ([CONFIGS / 'README.md'], 'README.md'),
        ([CLASSIFIER, '--shape', '64', '--out', f'{__file__}/x'], 'can not be written'),
        ([CLASSIFIER, '--shape', '64', '--out', ''], 'is not a path'),
        ([CLASSIFIER, '--shap', '64'], '--shap'),
        ([CLASSIFIER, '--shape'], '--shape'),
        ([CLASSIFIER, '--cfg-options', 'modle.backbone.arch=small'], "'model'?"),
        ([CLASSIFIER, '--cfg-options', 'model=5'], 'soft-t_in1k.py'),
        ([CLASSIFIER, '--cfg-options', 'model.backbone.ach=small'], "'ach'"),
        ([CLASSIFIER, '--shape', '16'], 'at least 32 x 32'),
        ([CLASSIFIER, '--cfg-options', 'model.backbone.arch=huger'], "'huger'"),
        ([CLASSIFIER, '--cfg-options', 'model.backbone.type=mmlinattn.Sofa'], 'Sofa'),
        (
            [CLASSIFIER, '--cfg-options', 'test_dataloader.dataset.pipeline=[]'],
            'give --shape',
        ),
        ([CLASSIFIER, '--shape', '64', '--out', ROOT], str(ROOT)),
    ],
)
def test_bad_input(options, says, capsys):
    pytest.importorskip('mmpretrain')
    assert says in error_of(options, capsys)


@pytest.mark.parametrize(
    'text',
    ['x = 1', 'model = dict(', "_base_ = 'missing.py'", "model = 'SOFT'", 'model = {}'],
)
def test_bad_config(text, tmp_path, capsys):
    config = tmp_path / 'bad.py'
    config.write_text(text)
    assert str(config) in error_of([config, '--shape', '64'], capsys)


def test_debug_shows_where(tmp_path, capsys):
    config = tmp_path / 'bad.py'
    config.write_text("model = dict(type='mmlinattn.NoSuchModel')")
    with pytest.raises(SystemExit) as stop:
        get_flops.main([str(config), '--shape', '64', '--debug'])
    first, *_, last = capsys.readouterr().err.splitlines()
    assert stop.value.code == 2 and 'NoSuchModel' in last
    assert first.startswith('Traceback')


@pytest.mark.parametrize(
    'options',
    [
        ['--shape', '0'],
        ['--shape', '1', '2', '3'],
        ['--shape', 'big'],
        ['--cfg-options', 'arch'],
    ],
)
def test_bad_arguments(options, capsys):
    assert options[0] in error_of([CLASSIFIER, *options], capsys)


def test_command_line():
    pytest.importorskip('mmpretrain')
    done = subprocess.run(
        [sys.executable, str(TOOL), str(CLASSIFIER)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, '')
    assert 'one image of 224 x 224' in done.stdout
    assert 'all 2.125 G, without softmax-attention products 2.120 G' in done.stdout
