from pathlib import Path

import pytest
import torch
from loading import load_module
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

get_flops = load_module(TOOL)


@pytest.fixture
def report(monkeypatch, capsys):
    """Runs the tool, and returns its count, checked, and its output."""

    def run(config, *options, size, backbone):
        tables = []
        monkeypatch.setattr(get_flops, 'print_table', lambda *args: tables.append(args))
        get_flops.main([str(config), *map(str, options)])
        ((model, flops),) = tables
        monkeypatch.undo()
        get_flops.print_table(model, flops)
        parts = dict(model.named_children())
        assert sum(map(flops.total, parts)) == flops.total()
        assert sum(flops.by_kind().values()) == flops.total()
        less = flops.total() - flops.without_softmax_attention()
        assert less == flops.by_kind()['softmax_attention'] > 0
        images = torch.zeros(1, 3, *size, device='meta')
        expected = count_flops(backbone.to('meta'), images).total()
        assert flops.total('backbone' if hasattr(model, 'backbone') else '') == expected
        return flops, capsys.readouterr().out

    return run


def test_classifier(report):
    pytest.importorskip('mmpretrain')
    backbone = SOFT('tiny', out_type='cls_token')
    flops, printed = report(CLASSIFIER, '--shape', 64, size=(64, 64), backbone=backbone)
    assert flops.total('head') == 512 * 1000
    assert 'one image of 64 x 64' in printed
    assert f' {flops.total() / 1e9:.3f} ' in printed
    assert ' 13.07 ' in printed  # as in the paper


def test_segmentor(report):
    pytest.importorskip('mmseg')
    backbone = SOFTPlusPlus('tiny')
    flops, _ = report(UPERNET, '--shape', 64, 96, size=(64, 96), backbone=backbone)
    assert flops.total('decode_head') > 0 == flops.total('auxiliary_head')


def test_one_stage_detector(report):
    pytest.importorskip('mmdet')
    backbone = SOFTPlusPlus('tiny')
    flops, _ = report(RETINANET, '--shape', 128, size=(128, 128), backbone=backbone)
    # 4 convolutions and an output for classes and boxes, 9 anchors, P3 to P7
    positions = 16**2 + 8**2 + 4**2 + 2**2 + 1
    head = 9 * 256 * (2 * 4 * 256 + 9 * 80 + 9 * 4) * positions
    assert flops.total('bbox_head') == head


def test_two_stage_detector(report):
    """The RoI head gets as many proposals as the RPN may keep, at any size."""
    pytest.importorskip('mmdet')
    num = 7
    options = ('--cfg-options', f'model.test_cfg.rpn.max_per_img={num}')
    backbone = SOFTPlusPlus('tiny')
    flops, _ = report(
        MASK_RCNN, '--shape', 64, *options, size=(64, 64), backbone=backbone
    )
    positions = 16**2 + 8**2 + 4**2 + 2**2 + 1
    rpn = (9 * 256 * 256 + 256 * 3 * (1 + 4)) * positions
    assert flops.total('rpn_head') == rpn
    box = 256 * 7 * 7 * 1024 + 1024 * 1024 + 1024 * (81 + 4 * 80)
    mask = 14**2 * 256 * 256 * (4 * 9 + 4) + 28**2 * 256 * 80
    assert flops.total('roi_head') == num * (box + mask)


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
        nn.init.ones_(self.conv.bias)

    def forward(self, x):
        return self.conv(x) if self.conv.bias.sum().item() > 0 else x


def test_falls_back_to_the_cpu():
    assert get_flops.count(NeedsValues(), (5, 7)).total() == 5 * 7 * 3 * 4


@pytest.mark.parametrize(
    'options, says',
    [
        ([CLASSIFIER, '--shape', 1, 2, 3], '--shape takes one or two numbers, got 3'),
        ([CLASSIFIER, '--shape', 16], 'x must be at least 32 x 32'),
        (
            [CLASSIFIER, '--cfg-options', 'test_dataloader.dataset.pipeline=[]'],
            'give --shape',
        ),
        ([ROOT / 'configs/_base_/det_runtime.py'], 'has no model'),
    ],
)
def test_bad_input(options, says, tmp_path, capsys):
    pytest.importorskip('mmpretrain')
    with pytest.raises(SystemExit) as stop:
        get_flops.main([str(option) for option in options])
    (line,) = capsys.readouterr().err.splitlines()
    assert stop.value.code == 2 and says in line
