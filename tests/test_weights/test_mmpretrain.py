"""mmpretrain's DeiT and Swin, converted: ours are the same functions."""

import pytest
import torch
from mmengine.registry import MODELS

from mmlinattn import weights
from mmlinattn.weights.families import FAMILIES
from mmlinattn.weights.rows import inside

pytestmark = pytest.mark.modern
pytest.importorskip('mmpretrain')

DEIT = dict(embed_dims=16, num_layers=3, num_heads=2)
SWIN = dict(embed_dims=8, depths=[2, 2, 2, 2], num_heads=[1, 2, 4, 4])
# no shifts where maps are smaller than a window: told to pad them, mmpretrain
# shifts them too, which Swin itself doesn't
SWIN_FOR_SMALL = dict(SWIN, depths=[2, 2, 1, 1])


def build_classifier(backbone, head):
    """mmpretrain's classifier with random weights."""
    model = MODELS.build(
        dict(
            type='mmpretrain.ImageClassifier',
            backbone=backbone,
            head=dict(type=f'mmpretrain.{head}', num_classes=5, in_channels=64),
            data_preprocessor=dict(type='mmpretrain.ClsDataPreprocessor'),
        )
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def load(model, converted):
    """Our model with the backbone's part of a converted checkpoint."""
    prefix = 'backbone.'
    model.load_state_dict(
        {
            key[len(prefix) :]: value
            for key, value in converted['state_dict'].items()
            if key.startswith(prefix)
        }
    )
    return model.eval()


@pytest.fixture(scope='module')
def deit():
    arch = dict(DEIT, embed_dims=64, feedforward_channels=256)
    return build_classifier(
        dict(
            type='mmpretrain.VisionTransformer', arch=arch, img_size=96, patch_size=16
        ),
        'VisionTransformerClsHead',
    )


@pytest.mark.parametrize(
    'height, width', [(96, 96), (224, 224), (64, 160), (208, 48), (96, 112), (50, 75)]
)
@torch.no_grad()
def test_deit(deit, convert, relative_error, height, width):
    converted = convert(deit.state_dict(), family='deit')
    ours = load(
        MODELS.build(
            dict(
                type='mmlinattn.VisionTransformer',
                arch=dict(DEIT, embed_dims=64),
                img_size=96,
                out_type='cls_token',
            )
        ),
        converted,
    )
    x = torch.randn(2, 3, height, width)
    (token,) = ours(x)
    head = converted['state_dict']
    logits = token @ head['head.fc.weight'].mT + head['head.fc.bias']
    assert relative_error(token, deit.backbone(x)[-1]) < 1e-5
    assert relative_error(logits, deit(x)) < 1e-5
    ours.out_type = deit.backbone.out_type = 'featmap'
    try:
        assert relative_error(ours(x)[-1], deit.backbone(x)[-1]) < 1e-5
    finally:
        deit.backbone.out_type = 'cls_token'


@pytest.mark.parametrize(
    'arch, height, width',
    [
        (SWIN, 224, 224),
        (SWIN, 193, 257),
        (SWIN, 230, 311),
        (SWIN, 449, 193),
        (SWIN_FOR_SMALL, 64, 96),
        (SWIN_FOR_SMALL, 61, 90),
        (SWIN_FOR_SMALL, 60, 129),
    ],
)
@torch.no_grad()
def test_swin(convert, relative_error, arch, height, width):
    theirs = build_classifier(
        dict(
            type='mmpretrain.SwinTransformer',
            arch=arch,
            out_indices=(0, 1, 2, 3),
            pad_small_map=arch is SWIN_FOR_SMALL,
        ),
        'LinearClsHead',
    ).backbone
    state_dict = {f'backbone.{k}': v for k, v in theirs.state_dict().items()}
    converted = convert(state_dict, family='swin')
    assert converted['meta']['arch'] == arch
    ours = load(
        MODELS.build(dict(type='mmlinattn.SwinTransformer', arch=arch)), converted
    )
    x = torch.randn(2, 3, height, width)
    maps = ours(x)
    errors = [relative_error(*pair) for pair in zip(maps, theirs(x))]
    assert len(errors) == 4 and max(errors) < 1e-5, errors


def test_prefix_is_optional():
    """A backbone alone, as mmpretrain's tools extract it."""
    model = MODELS.build(dict(type='mmpretrain.SwinTransformer', arch=SWIN))
    state_dict = model.state_dict()
    expected = weights.convert(
        {f'backbone.{k}': v for k, v in state_dict.items()}, 'swin'
    )
    converted = weights.convert(state_dict, 'swin')
    assert converted.keys() == expected.keys()
    assert 'backbone.norm3.bias' in converted and 'backbone.norm0.bias' not in converted


@pytest.mark.parametrize(
    'family, theirs, ours',
    [
        ('deit', dict(type='VisionTransformer', arch='deit-small'), 'deit-small'),
        ('deit', dict(type='VisionTransformer', arch='deit-base'), 'deit-base'),
        ('swin', dict(type='SwinTransformer', arch='tiny'), 'tiny'),
        ('swin', dict(type='SwinTransformer', arch='small'), 'small'),
        ('swin', dict(type='SwinTransformer', arch='base'), 'base'),
    ],
)
def test_keys_of_full_models(monkeypatch, family, theirs, ours):
    """Every key and shape, without the weights."""
    # mmpretrain reads its drop path rates from a tensor, which meta has not
    linspace = torch.linspace
    monkeypatch.setattr(torch, 'linspace', lambda *args: linspace(*args, device='cpu'))
    with torch.device('meta'):
        model = MODELS.build({**theirs, 'type': f'mmpretrain.{theirs["type"]}'})
        converted = weights.convert(model.state_dict(), family)
        type_name = f'mmlinattn.{theirs["type"]}'
        options = dict(out_indices=(3,)) if family == 'swin' else dict()
        backbone = MODELS.build(dict(type=type_name, arch=ours, **options))
    assert {key: value.shape for key, value in converted.items()} == {
        f'backbone.{key}': value.shape for key, value in backbone.state_dict().items()
    }
    arch = FAMILIES[family].arch(inside(converted, 'backbone.'))
    assert arch == {key: backbone.arch_zoo[ours][key] for key in arch}


def test_distilled_model():
    model = MODELS.build(
        dict(
            type='mmpretrain.DistilledVisionTransformer',
            arch=dict(DEIT, feedforward_channels=64),
        )
    )
    state_dict = {f'backbone.{k}': v for k, v in model.state_dict().items()}
    with pytest.raises(ValueError, match='dist_token, head_dist'):
        weights.convert(state_dict, 'deit')
