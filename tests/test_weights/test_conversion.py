"""Recognition of official keys, and the way back to them."""

import pytest
import torch
from mmengine.registry import MODELS

from mmlinattn.models import SOFT, CaiT, CSWinTransformer, VisionTransformer
from mmlinattn.weights import convert, convert_back, recognize
from mmlinattn.weights.conversion import plan_conversion
from mmlinattn.weights.families import FAMILIES

pytestmark = pytest.mark.modern

NAMES = [
    f'{family}_{kind}'
    for family in ('deit', 'cait', 'swin')
    for kind in ('attnscale', 'featscale', 'timm')
]
NAMES += ['cswin_classifier', 'cswin_backbone', 'soft']


@pytest.fixture
def official(antioversmoothing, cswin, soft):
    """Official weights by name, without buffers."""

    def get(name):
        family, _, kind = name.partition('_')
        if family == 'soft':
            return family, soft.weights()
        if family == 'cswin':
            return family, cswin.weights(kind)
        weights = antioversmoothing.weights(name)
        buffers = FAMILIES[family].buffers
        return family, {k: v for k, v in weights.items() if not k.endswith(buffers)}

    return get


@pytest.mark.parametrize('name', NAMES)
def test_recognized(official, name):
    family, weights = official(name)
    assert recognize(weights) == family
    assert recognize({f'backbone.{key}': x for key, x in weights.items()}) == family
    assert recognize(convert(weights, family)) == 'mmlinattn'


@pytest.mark.parametrize(
    'names',
    [
        [],
        ['conv1.weight', 'layer1.0.conv1.weight', 'fc.bias'],
        ['backbone.conv1.weight', 'head.fc.bias'],
        ['cls_token', 'pos_embed'],
        ['patch_embed1.proj.weight', 'block1.0.attn.q.weight', 'norm1.bias'],
    ],
)
def test_not_recognized(names):
    assert recognize(names) is None


@pytest.mark.parametrize(
    'model',
    [
        lambda: SOFT('tiny'),
        lambda: CSWinTransformer('t24181', 'elfatt'),
        lambda: VisionTransformer('deit-small'),
        lambda: CaiT('xxs24'),
    ],
)
def test_ours_are_recognized(model):
    with torch.device('meta'):
        assert recognize(model().state_dict()) == 'mmlinattn'


@pytest.mark.parametrize('name', NAMES)
def test_round_trip_is_exact(official, name):
    family, weights = official(name)
    plan = plan_conversion(weights, family)
    back, _ = convert_back(convert(weights, family), family, plan.describe())
    assert back.keys() == weights.keys()
    assert all(back[key].equal(value) for key, value in weights.items())


@pytest.mark.parametrize('name', NAMES)
def test_way_back_without_metadata(official, name):
    """The official repository's names are told from ours."""
    family, weights = official(name)
    back, _ = convert_back(convert(weights, family), family)
    if name == 'swin_timm':  # timm has its own
        layout = plan_conversion(weights, family).layout
        assert layout.style == 'timm'
        assert {'layers.0.downsample.norm.bias', 'head.bias'} < back.keys()
        return
    assert back.keys() == weights.keys()
    assert all(back[key].equal(value) for key, value in weights.items())


@pytest.mark.parametrize(
    'family, backbone',
    [
        ('swin', dict(type='SwinTransformer', out_indices=(0, 1, 2, 3))),
        ('deit', dict(type='VisionTransformer')),
    ],
)
def test_round_trip_of_mmpretrain(family, backbone):
    pytest.importorskip('mmpretrain')
    arch = dict(embed_dims=8, num_layers=2, num_heads=2, feedforward_channels=32)
    if family == 'swin':
        arch = dict(embed_dims=8, depths=[2, 2, 2, 1], num_heads=[1, 2, 4, 4])
    backbone = dict(backbone, type=f'mmpretrain.{backbone["type"]}', arch=arch)
    weights = {
        f'backbone.{key}': torch.randn(value.shape)
        for key, value in MODELS.build(backbone).state_dict().items()
        if not key.endswith('relative_position_index')
    }
    weights['head.fc.weight'] = weights['head.fc.bias'] = torch.randn(5)
    plan = plan_conversion(weights, family)
    assert plan.layout.style == 'mm'
    back, _ = convert_back(convert(weights, family), family, plan.describe())
    assert back.keys() == weights.keys()
    assert all(back[key].equal(value) for key, value in weights.items())


def test_way_back_accounts_for_every_key(official):
    family, weights = official('deit_timm')
    ours = convert(weights, family)
    lacking = {key: x for key, x in ours.items() if key != 'backbone.norm1.bias'}
    with pytest.raises(ValueError, match=r'missing 1 \(backbone.norm1.bias\), left o'):
        convert_back(lacking, family)
    with pytest.raises(ValueError, match=r'missing 0, left over 1 \(backbone.x\)'):
        convert_back({**ours, 'backbone.x': torch.zeros(1)}, family)
    family, weights = official('cait_timm')
    maps = {k: x for k, x in convert(weights, family).items() if 'class_' not in k}
    with pytest.raises(ValueError, match='the class layers are missing'):
        convert_back(maps, family)


def test_parts_of_a_detector_stay(official):
    """A detector of the official repository, which numbers its norms."""
    family, weights = official('swin_featscale')
    detector = {
        f'backbone.{key}'.replace('backbone.norm.', 'backbone.norm1.'): x
        for key, x in weights.items()
        if not key.startswith('head.')
    }
    detector['backbone.norm0.weight'] = detector['backbone.norm0.bias'] = torch.ones(8)
    detector['neck.fpn_convs.0.conv.bias'] = torch.ones(3)
    detector['roi_head.bbox_head.fc_cls.bias'] = torch.ones(4)
    ours = convert(detector, family)
    assert ours['backbone.norm1.bias'].equal(weights['norm.bias'])
    assert ours['roi_head.bbox_head.fc_cls.bias'].equal(torch.ones(4))
    back, _ = convert_back(ours, family)
    assert back.keys() == detector.keys()
    assert all(back[key].equal(value) for key, value in detector.items())
