"""MLLA, RAVLT, MAViT, H-ViT^3 and ViT^3 beside the official code, and models that start
from their weights."""

import pytest
import rotary_fixture as rotary
import torch
from mmengine.model import BaseModel
from torch import nn

from mmlinattn.models import MLLA, RAVLT, ConvPoolingNeck, HViTTT, MAViT, ViTTT
from mmlinattn.weights.fitting import fit

KINDS = dict(mlla=MLLA, ravlt=RAVLT, mavit=MAViT, hvittt=HViTTT)
PLAIN = dict(vittt=ViTTT)
# computed by our models
BUFFERS = dict(
    mlla='layers.0.blocks.0.attn.rope.rotations',
    ravlt='layers.0.RoPE.angle',
    mavit='layers.0.RoPE.angle',
    hvittt='layers.0.blocks.0.rope.rotations',
)
# classifiers with a norm behind their backbone
NECKS = ('ravlt', 'mavit', 'hvittt')
FAMILIES = pytest.mark.parametrize('family', KINDS)
EVERY = pytest.mark.parametrize('family', KINDS | PLAIN)


class Classifier(BaseModel):
    """A classifier in the form of mmpretrain's."""

    def forward(self, x):
        outs = self.backbone(x)
        return self.head.fc((self.neck(outs) if self.neck else outs)[0])


def build_classifier(family, arch, num_classes, projection=None):
    """A classifier of one of the families."""
    options = dict(out_type='avg_featmap')
    if family in NECKS:
        options = dict(out_norm=None)
    if family in KINDS:
        options.update(out_indices=(3,))
    model = Classifier()
    model.backbone = (KINDS | PLAIN)[family](arch, **options)
    (dims,) = model.backbone.feature_channels
    model.neck = None
    if family in NECKS:
        model.neck = ConvPoolingNeck(dims, None if family == 'hvittt' else projection)
        dims = model.neck.out_channels
    model.head = nn.Module()
    model.head.fc = nn.Linear(dims, num_classes)
    # as mmpretrain's classifiers do
    model._register_load_state_dict_pre_hook(model.backbone._checkpoint_filter)
    return model


@FAMILIES
@torch.no_grad()
def test_outputs_of_the_classifier(relative_error, family):
    """A whole model takes the official file unchanged."""
    name, arch = f'{family}_classifier', rotary.ARCHS[family]
    model = build_classifier(family, arch, rotary.NUM_CLASSES, rotary.PROJECTION).eval()
    weights = rotary.weights(name)
    weights[BUFFERS[family]] = torch.ones(2)
    fitted = fit(model, dict(model=weights, epoch=299))
    assert fitted.whole
    model.load_state_dict(fitted.state_dict)
    out = model(rotary.image(name))
    assert relative_error(out, rotary.outputs(name)['logits']) < 1e-5


@FAMILIES
@torch.no_grad()
def test_outputs_of_the_backbone(relative_error, family):
    """A detector with official names: blocks, and maps of an odd image."""
    name = f'{family}_backbone'
    backbone = KINDS[family](arch=rotary.ARCHS[family]).eval()
    model = nn.ModuleDict(dict(backbone=backbone, bbox_head=nn.Linear(3, 2)))
    state_dict = {f'backbone.{key}': x for key, x in rotary.weights(name).items()}
    own = {'bbox_head.weight': torch.ones(2, 3), 'bbox_head.bias': torch.ones(2)}
    model.load_state_dict({**state_dict, **own})
    results = {}
    for i in rotary.BLOCKS:
        hook = rotary.record_block(results, f'block{i}')
        backbone.stages[i].blocks[0].register_forward_hook(hook)
    maps = backbone(rotary.image(name))
    results.update({f'map{i}': rotary.thin(x) for i, x in enumerate(maps)})
    outputs = rotary.outputs(name)
    assert results.keys() == outputs.keys()
    errors = {key: relative_error(x, outputs[key]) for key, x in results.items()}
    assert max(errors.values()) < 1e-5, errors


@pytest.mark.modern_full
@EVERY
def test_parameters(family):
    """They equal those of the papers' classifiers."""
    for size in (KINDS | PLAIN)[family].arch_zoo:
        width = 1024 if family == 'ravlt' else 2560 if size == 'large' else 2048
        with torch.device('meta'):
            model = build_classifier(family, size, 1000, width)
        number = sum(x.numel() for x in model.parameters())
        assert number == rotary.outputs('parameters')[f'{family}_{size}']
