"""The models of the AttnScale and FeatScale paper, Tables 1 and 3."""

import pytest
import torch

from mmlinattn.models import CaiT, SwinTransformer, VisionTransformer

pytestmark = pytest.mark.modern

DEIT = dict(out_type='cls_token')
# with a classifier of 1000 classes: millions of parameters, and what both add
PAPER = (
    (VisionTransformer, dict(DEIT, arch='deit-small'), 22.051, 72, 9216),
    (
        VisionTransformer,
        dict(DEIT, arch='deit-small', num_layers=24),
        43.344,
        144,
        18432,
    ),
    (CaiT, dict(arch='s24', out_type='cls_token'), 46.916, 192, 18432),
    (CaiT, dict(arch='xxs24', out_type='cls_token'), 11.956, 96, 9216),
    (SwinTransformer, dict(arch='small', out_type='avg_featmap'), 49.606, 282, 18048),
)


def count_parameters(kind, options):
    with torch.device('meta'):
        model = kind(**options)
    classifier = 1000 * (model.feature_channels[-1] + 1)
    return classifier + sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    'kind, options, millions, attn_scale, feat_scale',
    PAPER,
    ids=('deit-s12', 'deit-s24', 'cait-s24', 'cait-xxs24', 'swin-s'),
)
def test_parameter_counts(kind, options, millions, attn_scale, feat_scale):
    base = count_parameters(kind, options)
    assert round(base / 1e6, 3) == millions
    counts = [
        count_parameters(kind, dict(options, **scales)) - base
        for scales in (
            dict(attn_scale=True),
            dict(feat_scale=True),
            dict(attn_scale=True, feat_scale=True),
        )
    ]
    assert counts == [attn_scale, feat_scale, attn_scale + feat_scale]
