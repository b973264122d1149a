"""EfficientViT beside the official code and timm's."""

import re

import efficientvit_fixture as efficientvit
import pytest
import timm
import torch
from loading import load_module
from mmengine.runner.checkpoint import load_state_dict
from our_configs import meta_model

from mmlinattn.commands import get_flops
from mmlinattn.models import ConvPoolingNeck, EfficientViT
from mmlinattn.registry import MODELS
from mmlinattn.utils.names import inside
from mmlinattn.weights import convert, convert_back, recognize
from mmlinattn.weights.conversion import plan_conversion

ACTIVATIONS = dict(b=dict(type='HSwish'), l=dict(type='GELU', approximate='tanh'))
WIDTHS = dict(
    b0=(1024, 1280),
    b1=(1536, 1600),
    b2=(2304, 2560),
    b3=(2304, 2560),
    l1=(3072, 3200),
    l2=(3072, 3200),
    l3=(6144, 6400),
)
# width, blocks, hidden channels of a block and of the last layer over it
HEADS = dict(
    b0_cityscapes=(32, 1, 4, 4),
    b1_cityscapes=(64, 3, 4, 4),
    b2_cityscapes=(96, 3, 4, 4),
    b3_cityscapes=(128, 3, 4, 4),
    l1_cityscapes=(256, 3, 1, None),
    l2_cityscapes=(256, 5, 1, None),
    b1_ade20k=(64, 3, 4, None),
    b2_ade20k=(96, 3, 4, None),
    b3_ade20k=(128, 3, 4, None),
    l1_ade20k=(128, 3, 4, 8),
    l2_ade20k=(128, 3, 4, 8),
)


def layers_of(series):
    return dict(
        norm_cfg=dict(type='BN', eps=efficientvit.EPS[series]),
        act_cfg=ACTIVATIONS[series],
    )


def build_neck(series, dims, widths):
    channels, hidden = widths
    return ConvPoolingNeck(
        dims, channels, bias=False, hidden_channels=hidden, **layers_of(series)
    )


def build_head(series, dims, num_classes, **options):
    options = dict(options, num_classes=num_classes, in_channels=dims)
    head = dict(type='mmlinattn.EfficientViTHead', **options, **layers_of(series))
    return MODELS.build(head)


def build(name):
    """Our model for a recording, in parts that have the names of OpenMMLab's models."""
    series = efficientvit.series_of(name)
    backbone = EfficientViT(dict(efficientvit.ARCHS[series], series=series))
    parts, dims = dict(backbone=backbone), backbone.feature_channels
    if 'classifier' in name:
        parts['neck'] = build_neck(series, dims[-1], efficientvit.WIDTHS)
        last = torch.nn.Linear(efficientvit.WIDTHS[-1], efficientvit.NUM_CLASSES)
        parts['head'] = torch.nn.ModuleDict(dict(fc=last))
    else:
        pytest.importorskip('mmseg')
        options = efficientvit.HEADS[series]
        parts['decode_head'] = build_head(
            series, list(dims[1:]), efficientvit.NUM_CLASSES, **options
        )
    return torch.nn.ModuleDict(parts).eval()


@pytest.mark.parametrize(
    'dtype, tolerance', ((torch.float32, 1e-5), (torch.float64, 1e-10)), ids=str
)
@pytest.mark.parametrize('name', efficientvit.NAMES)
@torch.no_grad()
def test_outputs(relative_error, name, dtype, tolerance):
    """All maps of an odd image, and a classifier's and a segmentor's logits."""
    converted = convert(efficientvit.weights(name), 'efficientvit')
    expected, model = efficientvit.outputs(name), build(name)
    model.load_state_dict(converted)
    maps = model.to(dtype).backbone(efficientvit.image(name).to(dtype))
    results = {f'map{i}': out for i, out in enumerate(maps)}
    if 'classifier' in name:
        results['logits'] = model.head.fc(model.neck(maps)[0])
    else:
        results['seg_logits'] = model.decode_head(maps)
    assert results.keys() == expected.keys()
    for key, result in results.items():
        assert relative_error(result.double(), expected[key]) < tolerance, key


@pytest.mark.modern_full
def test_parameters():
    """They equal those of the published models."""
    numbers = {}
    for key in efficientvit.outputs('parameters'):
        size, _, data = key.partition('_')
        with torch.device('meta'):
            backbone = EfficientViT(size)
            dims = backbone.feature_channels
            if data == 'classifier':
                parts = [build_neck(size[0], dims[-1], WIDTHS[size])]
                parts.append(torch.nn.Linear(WIDTHS[size][-1], 1000))
            else:
                channels, blocks, ratio, last_ratio = HEADS[key]
                options = dict(num_blocks=blocks, ratio=ratio, last_ratio=last_ratio)
                options.update(block='fused' if size[0] == 'l' else 'mb')
                classes = 19 if data == 'cityscapes' else 150
                options.update(channels=channels)
                parts = [build_head(size[0], list(dims[1:]), classes, **options)]
        modules = torch.nn.ModuleList([backbone, *parts])
        numbers[key] = sum(x.numel() for x in modules.parameters())
    expected = efficientvit.outputs('parameters')
    assert numbers == {key: int(x) for key, x in expected.items()}
    assert len(numbers) == len(WIDTHS) + len(HEADS)


@pytest.mark.modern_full
def test_printed_flops():
    """The authors count neither norms nor resizing, and print segmentors on ADE20K for
    images of 512 x 512."""
    printed = load_module('docs/site/model_zoo.py').read_printed()
    rows = {name: row for name, row in printed.items() if 'efficientvit' in name}
    assert len(rows) == 22
    for name, row in rows.items():
        shape = (512, 512) if 'ade20k' in name else (1024, 2048)
        if '_in1k' in name:
            shape = (int((re.findall(r'-(\d+)px', name) or [224])[0]),) * 2
        kinds = get_flops.count_on(meta_model(name), shape, 'meta').by_kind()
        flops = kinds['conv'] + kinds['linear'] + kinds['matmul']
        digits = len(row['flops'].partition('.')[2])
        assert f'{flops / 1e9:.{digits}f}' == row['flops'], name


def random_timm(size):
    """A model of timm whose every tensor matters, with the official epsilons: timm has
    others in the attention and in the head of series L."""
    model = timm.create_model(f'efficientvit_{size}', num_classes=7).eval()
    for module in model.modules():
        if hasattr(module, 'eps'):
            is_norm = isinstance(module, (torch.nn.BatchNorm2d, torch.nn.LayerNorm))
            module.eps = efficientvit.EPS[size[0]] if is_norm else 1e-15
    for key, value in model.state_dict().items():
        if key.endswith('running_var'):
            value.uniform_(0.5, 2)
        elif value.is_floating_point():
            value.add_(0.05 * torch.randn_like(value))
    return model


@pytest.mark.modern_full
@pytest.mark.parametrize(
    'size', ['b0', *(pytest.param(x, marks=pytest.mark.full) for x in ('b2', 'l1'))]
)
@torch.no_grad()
def test_timm(relative_error, size):
    """Its classifiers have the same outputs."""
    model = random_timm(size)
    official = model.state_dict()
    assert recognize(official) == 'efficientvit'
    converted = convert(official, 'efficientvit')
    backbone = EfficientViT(size, out_indices=(3,)).eval()
    backbone.load_state_dict(inside(converted, 'backbone.'))
    neck = build_neck(size[0], backbone.feature_channels[-1], WIDTHS[size]).eval()
    neck.load_state_dict(inside(converted, 'neck.'))
    x = torch.randn(1, 3, 64, 96)
    (map_,) = backbone(x)
    assert relative_error(map_, model.forward_features(x)) < 1e-5
    (features,) = neck([map_])
    logits = features @ converted['head.fc.weight'].mT + converted['head.fc.bias']
    assert relative_error(logits, model(x)) < 1e-5


@pytest.mark.modern_full
@pytest.mark.parametrize('size', ('b0', 'l1'))
def test_keys_of_timm(size):
    """Every key is accounted for, and back."""
    with torch.device('meta'):
        official = timm.create_model(f'efficientvit_{size}').state_dict()
    ours = convert(official, 'efficientvit')
    layout = plan_conversion(official, 'efficientvit').describe()
    back, _ = convert_back(ours, 'efficientvit', layout)
    assert {k: x.shape for k, x in back.items()} == {
        k: x.shape for k, x in official.items()
    }


@pytest.mark.parametrize('name', efficientvit.NAMES)
def test_missing_and_leftover_keys(name):
    """Of heads, too."""
    for change in ('missing 1', 'left over 1'):
        weights = efficientvit.weights(name)
        *_, key = [key for key in weights if key.startswith('head.')]
        if change == 'missing 1':
            del weights[key]
        else:
            weights[f'{key}.more'] = torch.zeros(1)
        with pytest.raises(ValueError, match=f'{change} .{key}'):
            convert(weights, 'efficientvit')


@torch.no_grad()
def test_a_backbone_gets_its_names_when_a_whole_model_is_loaded():
    """As MMEngine loads a checkpoint of an official model."""
    name = 'efficientvit_l_classifier'
    model, weights = build(name), efficientvit.weights(name)
    load_state_dict(model, weights, strict=False)
    expected = convert(weights, 'efficientvit')
    for key, value in model.backbone.state_dict().items():
        assert value.equal(expected[f'backbone.{key}']), key
