"""What configs start from by default."""

import re
from functools import partial

import pytest
import torch

from mmlinattn.models import CaiT, CSWinTransformer, SwinTransformer, VisionTransformer
from mmlinattn.weights import convert_back, load_pretrained, pretrained

pytestmark = pytest.mark.modern

# the normal run has each model once, and each family of attentions
QUICK = (
    r'^(mask-rcnn_(swin-s-featscale|deit-s12|softpp-t|deit-s24)_|'
    r'(mask-rcnn|retinanet|upernet)_c?swin-[tb]-elfatt|'
    r'mask-rcnn_swin-t-\w+_fpn_1x|cait-\w+-featscale_).*(1x_coco|1x_ade20k.*|in1k)$'
)

# by what the name of a config has: timm's name of the weights that are its start, the
# family and the plain model that they are of
STARTS = {
    r'_swin-t': ('swin_tiny_patch4_window7_224.ms_in1k', 'swin', 'tiny'),
    r'_swin-s': ('swin_small_patch4_window7_224.ms_in1k', 'swin', 'small'),
    r'_swin-b': ('swin_base_patch4_window7_224.ms_in1k', 'swin', 'base'),
    r'_deit-s12': ('deit_small_patch16_224.fb_in1k', 'deit', 'deit-small'),
    r'_cswin-t-elfatt': ('cswin_tiny_224', 'cswin', 'tiny'),
    r'_cswin-b-elfatt': ('cswin_base_224', 'cswin', 'base'),
    r'^cait-s24.*_finetune': ('cait_s24_224.fb_dist_in1k', 'cait', 's24'),
    r'^cait-xxs24.*_finetune': ('cait_xxs24_224.fb_dist_in1k', 'cait', 'xxs24'),
}
MODELS = dict(
    swin=SwinTransformer,
    deit=VisionTransformer,
    cswin=CSWinTransformer,
    cait=partial(CaiT, out_type='cls_token'),
)
CSWIN = 'https://github.com/microsoft/CSWin-Transformer/releases/download/v0.1.0/'


def start_of(name):
    """The entry of STARTS for a config, or None."""
    return next((x for key, x in STARTS.items() if re.search(key, name)), None)


def test_address(name, config):
    """It is the one that timm has, or, of CSWin, the official README."""
    cfg, start = config(name), start_of(name)
    if start is None:
        assert cfg.pretrained is None
    elif start[1] == 'cswin':
        assert cfg.pretrained == f'{CSWIN}{start[0]}.pth'
    else:
        timm = pytest.importorskip('timm')
        assert cfg.pretrained == timm.get_pretrained_cfg(start[0]).url


def test_weights_fit(name, meta_model, monkeypatch):
    """Official weights of this model and size start the backbone.

    Of a model's own attentions, and of those with a scaling technique, nothing but
    scaling vectors and norms of maps keeps initial values.
    """
    start = start_of(name)
    if start is None:
        pytest.skip('trains from scratch')
    _, family, arch = start
    with torch.device('meta'):
        plain = MODELS[family](arch=arch)
    weights = {f'backbone.{key}': x for key, x in plain.state_dict().items()}
    official, _ = convert_back(weights, family)
    said = []
    monkeypatch.setattr(pretrained, 'read_checkpoint', lambda *_, **__: official)
    monkeypatch.setattr(pretrained, 'print_log', lambda text, *_: said.append(text))
    backbone = meta_model(name).backbone
    load_pretrained(backbone, 'official.pth')
    own = not re.search('elfatt|global|efficient|agent|flatten', name)
    assert ('STARTS from' in said[0]) == (not own)
    if own:
        return
    # shapes allow these in every block that both have
    for key in backbone.state_dict():
        if re.search(r'\.(norm[12]|ffn\.layers\.[01]|attn\.(qkv|q|k|v|proj))\.', key):
            number = int(re.search(r'blocks\.(\d+)', key)[1])
            stage = int(re.search(r'stages\.(\d+)', key)[1])
            both = number < len(plain.stages[stage].blocks)
            assert (repr(key) in said[0]) == (not both), key
