"""Misspelled options and types: one line with the key and the likely name."""

import re

import pytest
from mmengine.config import Config

import mmlinattn.models  # noqa: F401
from mmlinattn.engine import build_model
from mmlinattn.models.attentions.base import BaseAttention
from mmlinattn.models.backbones.base import BaseBackbone
from mmlinattn.registry import MODELS
from mmlinattn.utils.options import likely, parameters_of, signature_of


def named(base):
    kinds = MODELS.module_dict.items()
    return sorted(name for name, kind in kinds if issubclass(kind, base))


def backbone(name, **options):
    archs = list(MODELS.get(name).arch_zoo)
    arch = dict(arch=archs[0]) if archs else {}
    return dict(type=f'mmlinattn.{name}', **arch, **options)


def pyramid(**options):
    arch = dict(embed_dims=[16], depths=[1], num_heads=[2])
    parts = dict(
        stem=dict(type='ConvStem'),
        merging=dict(type='ConvEmbedding'),
        attention=dict(type='SoftmaxAttention'),
    )
    return backbone('PyramidTransformer', arch=arch, **{**parts, **options})


def error_of(part, **more):
    head = dict(type='LinearClsHead', num_classes=3, in_channels=16)
    model = dict(type='ImageClassifier', backbone=part, head=head)
    model.update(more.pop('model', {}))
    with pytest.raises(ValueError, match='^(model|data_preprocessor)') as caught:
        build_model(Config(dict(default_scope='mmpretrain', model=model, **more)))
    return str(caught.value)


@pytest.mark.parametrize('name', named(BaseBackbone))
def test_options_of_backbones(name):
    """Those of a classifier of timm, and those that a base config sets for a ResNet."""
    text = error_of(backbone(name, drop_path=0.1))
    assert text.startswith(f'model.backbone.drop_path=0.1: {name} has no such option')
    assert text.endswith("did you mean 'drop_path_rate'?")
    text = error_of(backbone(name, depth=50, style='pytorch'))
    assert f"depth=50, model.backbone.style='pytorch': {name} has no such" in text
    assert '_delete_=True' in text
    text = error_of(backbone(name, pretrained='open-mmlab://resnet50_v1c'))
    assert 'set model.pretrained=None' in text


@pytest.mark.parametrize('name', named(BaseAttention))
def test_options_of_attentions(name):
    text = error_of(pyramid(attention=dict(type=name, attn_scal=True)))
    assert text == (
        f'model.backbone.attention.attn_scal=True: {name} has no such option; did you '
        "mean 'attn_scale'?"
    )


@pytest.mark.parametrize(
    'part, key, name',
    [
        (pyramid(stem=dict(type='ConvStem', norm=1)), 'stem.norm=1', 'norm_cfg'),
        (pyramid(block=dict(norm_placment='x')), "norm_placment='x'", 'norm_placement'),
        (pyramid(attention=dict(type='ELFAT')), "attention.type='ELFAT'", 'ELFATT'),
        (pyramid(norm_cfg=dict(type='BNN')), "norm_cfg.type='BNN'", 'BN'),
        (pyramid(norm_cfg=dict(type='BN', epss=1)), 'norm_cfg.epss=1', 'eps'),
        (pyramid(stem=dict(type='ConvStm')), "stem.type='ConvStm'", 'ConvStem'),
        (dict(type='ResNet', depht=18), 'backbone.depht=18', 'depth'),
        (dict(type='Resnet', depth=18), "backbone.type='Resnet'", 'ResNet'),
        (dict(type='mmdet.ResNt', depth=18), "type='mmdet.ResNt'", 'ResNet'),
    ],
)
def test_parts_of_models(part, key, name):
    text = error_of(part)
    assert text.startswith('model.backbone.') and key in text
    assert text.endswith(f'did you mean {name!r}?')


def test_parts_beside_the_backbone():
    part = dict(type='ResNet', depth=18)
    loss = dict(type='LinearClsHead', num_classes=3, in_channels=512)
    loss.update(loss=dict(type='CrossEntropyLoss', los_weight=1))
    text = error_of(part, model=dict(head=loss))
    assert re.match(r'model\.head\.loss\.los_weight=1: .* .loss_weight.\?$', text)
    text = error_of(part, data_preprocessor=dict(stdd=1))
    assert re.match(r'data_preprocessor\.stdd=1: .* .std.\?$', text)


def test_what_is_no_mistake_in_a_config(monkeypatch):
    """A fault of ours in a call that no config asked for stays one."""
    skeleton = MODELS.get('PyramidTransformer')
    monkeypatch.setattr(skeleton, '__init__', lambda self, arch: None)
    model = dict(type='ImageClassifier', backbone=dict(type='mmlinattn.SOFT'))
    with pytest.raises(TypeError, match="unexpected keyword argument 'stem'"):
        build_model(Config(dict(default_scope='mmpretrain', model=model)))


@pytest.mark.parametrize(
    'name, names, expected',
    [
        ('batchsize', ['batch_size', 'shuffle'], 'batch_size'),
        ('Adamw', ['Adam', 'AdamW', 'NAdam'], 'AdamW'),
        ('arch ', ['arch', 'attention'], 'arch'),
        ('num_class', ['num_classes', 'num_heads'], 'num_classes'),
        ('colour', ['shape', 'size'], None),
    ],
)
def test_likely_names(name, names, expected):
    assert likely(name, names) == expected


class Base:
    def __init__(self, first, *, second=1):
        """It takes two."""


class Open(Base):
    def __init__(self, third, **kwargs):
        """It hands on the others."""


class Any(Open):
    def __init__(self, *args, **kwargs):
        """So does it."""


class Dict(dict):
    def __init__(self, third, **kwargs):
        """It takes any."""


def test_parameters():
    assert parameters_of(Any) == parameters_of(Open) == {'first', 'second', 'third'}
    assert signature_of(Dict) == ({'third'}, True)
    assert parameters_of(Dict) is None
    assert parameters_of(lambda a, b=1: None) == {'a', 'b'}
