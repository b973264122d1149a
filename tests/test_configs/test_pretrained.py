"""Default weights of configs."""

import re
from functools import partial
from urllib.parse import urlparse

import pytest
import timm
import torch
from loading import load_module
from our_configs import PATHS, load, meta_model

from mmlinattn.models import (
    MLLA,
    RAVLT,
    VSSD,
    CaiT,
    CSWinTransformer,
    EfficientViT,
    HViTTT,
    SwinTransformer,
    VisionTransformer,
)
from mmlinattn.weights import convert_back, load_pretrained, pretrained

pytestmark = pytest.mark.modern_full

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
    cait=partial(CaiT, out_type='cls_token'),
)
# names behind addresses of the authors of other families, and their classifiers
OTHERS = {
    f'/{family}_{kind}_{arch[0]}.pth': (family, partial(model, arch, attention=family))
    for family in ('flatten', 'agent', 'inline')
    for kind, model, archs in (
        ('swin', SwinTransformer, ('tiny', 'small', 'base')),
        ('cswin', CSWinTransformer, ('t24181', 'b36292')),
    )
    for arch in archs
}
OTHERS |= {
    f'/mlla_{arch[0]}.pth': ('mlla', partial(MLLA, arch)) for arch in MLLA.arch_zoo
}
OTHERS |= {
    f'/RAVLT_{arch[0].upper()}.pth': ('ravlt', partial(RAVLT, arch, out_norm=None))
    for arch in RAVLT.arch_zoo
}
OTHERS |= {
    f'/h_vittt_{arch[0]}.pth': ('hvittt', partial(HViTTT, arch, out_norm=None))
    for arch in HViTTT.arch_zoo
}
OTHERS |= {
    f'/vssd_{arch}_best{ending}.pth': ('vssd', partial(VSSD, arch))
    for arch in VSSD.arch_zoo
    for ending in ['' if arch == 'micro' else '_ema']
}
OTHERS |= {
    f'/efficientvit_{arch}_r224.pth': ('efficientvit', partial(EfficientViT, arch))
    for arch in ('b1', 'b2', 'b3', 'l1', 'l2')
}
SCALED = {
    f'{technique}scale_small_12.pth': {f'{technique}_scale': True}
    for technique in ('attn', 'feat')
}
OWN = re.compile(
    'elfatt|global|efficientvit|efficient|agent|flatten|inline|polaformer|mlla|ravlt'
    '|hvittt|vssd|local'
)


@pytest.fixture(scope='module')
def starts():
    """Family and model by the address that timm has."""
    return {timm.get_pretrained_cfg(name).url: start for name, *start in TIMM}


def test_addresses(starts):
    zoo = load_module('docs/site/model_zoo.py')
    addresses = {zoo.start_of(path) for path in PATHS.values()} - {None}
    scaled = {x for x in addresses if x.rpartition('/')[2] in SCALED}
    assert len(scaled) == len(SCALED)
    assert {x for x in addresses if not urlparse(x).fragment} == {*starts, *scaled}
    assert {urlparse(x).fragment for x in addresses} - {''} < {*OTHERS}


def test_weights_fit(name, starts, monkeypatch):
    """Official weights of this model and size start the backbone: of a model's own
    attentions, and of those with a technique, all but vectors and norms of maps."""
    address = load(name).pretrained
    if not address:
        pytest.skip('trains from scratch')
    own = (OWN.findall(name) or ['local'])[0]
    if address in starts:
        family, arch = starts[address]
        build, theirs = partial(MODELS[family], arch=arch), 'local'
    elif address.rpartition('/')[2] in SCALED:
        options = SCALED[address.rpartition('/')[2]]
        family, theirs = 'deit', 'local'
        build = partial(VisionTransformer, 'deit-small', **options)
    else:
        family, build = OTHERS[urlparse(address).fragment]
        theirs = family
    with torch.device('meta'):
        plain = build()
    weights = {f'backbone.{key}': x for key, x in plain.state_dict().items()}
    official, _ = convert_back(weights, family)
    said = []
    monkeypatch.setattr(pretrained, 'read_checkpoint', lambda *_, **__: official)
    monkeypatch.setattr(pretrained, 'log', lambda text, *_: said.append(text))
    load_pretrained(meta_model(name).backbone, 'official.pth')
    assert ('STARTS from' in said[0]) == (own != theirs)
    # depths of CSWin are the same
    if 'cswin' in name and own not in (theirs, 'flatten'):
        initial = re.search('keep their initial values: (.*); not used', said[0])[1]
        assert set(re.findall(r'[a-z]+', initial)) <= {'norm', 'weight', 'bias', 'none'}
