import pytest
import torch
from loading import ROOT
from torch import nn

from mmlinattn.analysis import count_flops
from mmlinattn.commands import get_flops
from mmlinattn.engine.preflight import build_model
from mmlinattn.models import SOFT
from mmlinattn.utils import load_config

pytestmark = pytest.mark.modern_full
CONFIGS = ROOT / 'configs/soft'
CLASSIFIER = CONFIGS / 'soft-t_in1k.py'
MASK_RCNN = CONFIGS / 'mask-rcnn_softpp-t_fpn_1x_coco.py'


def test_table_of_a_classifier(capsys):
    get_flops.main([str(CLASSIFIER), '--shape', '64'])
    backbone, image = SOFT('tiny', out_type='cls_token'), torch.zeros(1, 3, 64, 64)
    macs = count_flops(backbone.to('meta'), image.to('meta')).total() + 512 * 1000
    printed = capsys.readouterr().out
    assert 'one image of 64 x 64' in printed and f' {macs / 1e9:.3f} ' in printed
    assert ' 13.07 ' in printed  # as in the paper


def test_two_stage_detector():
    """The RoI head gets as many proposals as the RPN may keep, at any size; the parts
    of heads that have to run are counted, too."""
    cfg = load_config(str(MASK_RCNN), {'model.test_cfg.rpn.max_per_img': 7})
    flops = get_flops.count(build_model(cfg), (64, 64))
    positions = 16**2 + 8**2 + 4**2 + 2**2 + 1
    rpn = (9 * 256 * 256 + 256 * 3 * (1 + 4)) * positions
    assert flops.total('rpn_head') == rpn
    box = 256 * 7 * 7 * 1024 + 1024 * 1024 + 1024 * (81 + 4 * 80)
    mask = 14**2 * 256 * 256 * (4 * 9 + 4) + 28**2 * 256 * 80
    assert flops.total('roi_head') == 7 * (box + mask)
    parts = 'backbone', 'neck', 'rpn_head', 'roi_head'
    assert sum(map(flops.total, parts)) == flops.total()


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
        ([ROOT / 'configs/_base_/det_runtime.py'], 'model: '),
    ],
)
def test_bad_input(options, says, error_of):
    assert says in error_of(get_flops.main, [str(option) for option in options])
