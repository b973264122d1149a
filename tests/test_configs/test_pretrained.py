"""What configs start from by default."""

import re
from functools import partial

import pytest
import torch

from mmlinattn.models import CaiT, CSWinTransformer, SwinTransformer, VisionTransformer
from mmlinattn.weights import convert_back, load_pretrained, pretrained

pytestmark = pytest.mark.modern

# each model once, and each family of attentions
QUICK = (
    r'^(mask-rcnn_(swin-s-featscale|deit-s12)_|'
    r'(mask-rcnn|retinanet|upernet)_c?swin-[tb]-elfatt|'
    r'mask-rcnn_swin-t-\w+_fpn_1x|cait-\w+-featscale_).*(1x_coco|1x_ade20k.*|in1k)$'
)
# timm's name of official weights, the family and the plain model that they are of
TIMM = [
    ('swin_tiny_patch4_window7_224.ms_in1k', 'swin', 'tiny'),
    ('swin_small_patch4_window7_224.ms_in1k', 'swin', 'small'),
    ('swin_base_patch4_window7_224.ms_in1k', 'swin', 'base'),
    ('deit_small_patch16_224.fb_in1k', 'deit', 'deit-small'),
    ('cait_s24_224.fb_dist_in1k', 'cait', 's24'),
    ('cait_xxs24_224.fb_dist_in1k', 'cait', 'xxs24'),
]
MODELS = dict(
    swin=SwinTransformer,
    deit=VisionTransformer,
    cswin=CSWinTransformer,
    cait=partial(CaiT, out_type='cls_token'),
)
CSWIN = 'https://github.com/microsoft/CSWin-Transformer/releases/download/v0.1.0/'


@pytest.fixture(scope='module')
def starts():
    """Family and model by the address that timm has, or, of CSWin, the README."""
    timm = pytest.importorskip('timm')
    cswin = {
        f'{CSWIN}cswin_{arch}_224.pth': ('cswin', arch) for arch in ('tiny', 'base')
    }
    return cswin | {timm.get_pretrained_cfg(name).url: start for name, *start in TIMM}


def test_addresses(names, config, starts):
    assert {config(name).pretrained for name in names} >= {None, *starts}


def test_weights_fit(name, config, meta_model, starts, monkeypatch):
    """Official weights of this model and size start the backbone: of a model's own
    attentions, and of those with a technique, all but vectors and norms of maps."""
    if config(name).pretrained not in starts:
        pytest.skip('trains from scratch, or from others')
    family, arch = starts[config(name).pretrained]
    with torch.device('meta'):
        plain = MODELS[family](arch=arch)
    weights = {f'backbone.{key}': x for key, x in plain.state_dict().items()}
    official, _ = convert_back(weights, family)
    said = []
    monkeypatch.setattr(pretrained, 'read_checkpoint', lambda *_, **__: official)
    monkeypatch.setattr(pretrained, 'print_log', lambda text, *_: said.append(text))
    load_pretrained(meta_model(name).backbone, 'official.pth')
    other = bool(re.search('elfatt|global|efficient|agent|flatten', name))
    assert ('STARTS from' in said[0]) == other
