import pytest
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, init_default_scope
from torch import nn

pytestmark = pytest.mark.modern

SOFT = dict(
    type='mmlinattn.SOFTPlusPlus',
    arch=dict(embed_dims=[8, 16, 24, 32], depths=[1, 2, 1, 1], num_heads=[1, 2, 3, 4]),
)
DEIT = dict(
    type='mmlinattn.VisionTransformer',
    arch=dict(embed_dims=16, num_layers=3, num_heads=2),
)
LR, DECAY = 1e-3, 0.05


def retinanet():
    anchors = dict(type='AnchorGenerator', scales=[8], ratios=[1.0], strides=[4, 8])
    return dict(
        type='mmdet.RetinaNet',
        backbone=SOFT,
        neck=dict(
            type='mmdet.FPN', in_channels=[8, 16, 24, 32], out_channels=8, num_outs=5
        ),
        bbox_head=dict(
            type='mmdet.RetinaHead',
            num_classes=2,
            in_channels=8,
            feat_channels=8,
            stacked_convs=1,
            anchor_generator=dict(anchors, type='mmdet.AnchorGenerator'),
            bbox_coder=dict(type='mmdet.DeltaXYWHBBoxCoder'),
        ),
    )


def upernet():
    return dict(
        type='mmseg.EncoderDecoder',
        backbone=SOFT,
        decode_head=dict(
            type='mmseg.UPerHead',
            in_channels=[8, 16, 24, 32],
            in_index=[0, 1, 2, 3],
            channels=8,
            num_classes=2,
            norm_cfg=dict(type='BN'),
        ),
        test_cfg=dict(mode='whole'),
    )


def classifier():
    return dict(
        type='mmpretrain.ImageClassifier',
        backbone=dict(DEIT, out_type='cls_token'),
        head=dict(type='mmpretrain.LinearClsHead', num_classes=2, in_channels=16),
    )


LIBRARIES = dict(mmdet=retinanet, mmseg=upernet, mmpretrain=classifier)


def groups_of(model, **paramwise_cfg):
    """Settings of each parameter by its name, and whether all are there."""
    wrapper = build_optim_wrapper(
        model,
        dict(
            type='OptimWrapper',
            optimizer=dict(type='AdamW', lr=LR, weight_decay=DECAY),
            constructor='mmlinattn.LayerDecayOptimWrapperConstructor',
            paramwise_cfg=paramwise_cfg,
        ),
    )
    names = {id(param): name for name, param in model.named_parameters()}
    return {
        names[id(param)]: group
        for group in wrapper.optimizer.param_groups
        for param in group['params']
    }


@pytest.mark.parametrize('library', LIBRARIES)
def test_dense_models_and_classifiers(library):
    """Every parameter trains with the rate of its layer."""
    pytest.importorskip(library)
    init_default_scope(library)
    model = MODELS.build(LIBRARIES[library]())
    groups = groups_of(model, layer_decay_rate=0.5)
    assert groups.keys() == {k for k, x in model.named_parameters() if x.requires_grad}
    if library == 'mmpretrain':
        depths = {
            'backbone.cls_token': 0,
            'backbone.patch_embed.layer.0.weight': 0,
            'backbone.blocks.0.norm1.bias': 1,
            'backbone.blocks.2.attn.qkv.weight': 3,
            'backbone.norm2.weight': 4,
            'head.fc.weight': 4,
        }
        last = 4
    else:
        depths = {
            'backbone.stages.0.embedding.0.0.weight': 0,
            'backbone.stages.0.blocks.0.attn.q.weight': 1,
            'backbone.stages.1.embedding.layer.0.bias': 2,
            'backbone.stages.1.blocks.1.norm1.weight': 3,
            'backbone.stages.3.cls_token': 5,
            'backbone.norm3.weight': 6,
        }
        last = 6
    for name, layer in depths.items():
        assert groups[name]['lr'] == pytest.approx(LR * 0.5 ** (last - layer)), name
    outside = [name for name in groups if not name.startswith('backbone.')]
    assert outside and all(groups[name]['lr'] == LR for name in outside)
    assert all(group['weight_decay'] == DECAY for group in groups.values())


def test_same_rates_as_mmpretrain():
    """Its constructor, which takes classifiers alone."""
    pytest.importorskip('mmpretrain')
    init_default_scope('mmpretrain')
    model = MODELS.build(classifier())
    options = dict(
        layer_decay_rate=0.65,
        norm_decay_mult=0.0,
        bias_decay_mult=0.1,
        flat_decay_mult=0.2,
        custom_keys={
            '.cls_token': dict(decay_mult=0.0),
            'pos_embed': dict(decay_mult=0.5),
        },
    )
    ours = groups_of(model, **options)
    wrapper = build_optim_wrapper(
        model,
        dict(
            optimizer=dict(type='AdamW', lr=LR, weight_decay=DECAY),
            constructor='mmpretrain.LearningRateDecayOptimWrapperConstructor',
            paramwise_cfg=options,
        ),
    )
    theirs = {group['param_name']: group for group in wrapper.optimizer.param_groups}
    assert ours.keys() == theirs.keys()
    for name, group in theirs.items():
        for key in ('lr', 'weight_decay', 'lr_scale'):
            assert ours[name][key] == pytest.approx(group[key]), (name, key)
    assert len({group['weight_decay'] for group in theirs.values()}) == 4


def test_frozen_stages_and_custom_rates():
    pytest.importorskip('mmpretrain')
    init_default_scope('mmpretrain')
    cfg = classifier()
    cfg['backbone'] = dict(cfg['backbone'], frozen_stages=1)
    model = MODELS.build(cfg)
    groups = groups_of(
        model,
        layer_decay_rate=0.5,
        custom_keys={'head': dict(lr_mult=10), 'qkv': dict(lr_mult=2)},
    )
    assert not [x for x in groups if 'blocks.0' in x or 'cls_token' in x]
    assert groups['head.fc.bias']['lr'] == pytest.approx(10 * LR)
    assert groups['backbone.blocks.1.attn.qkv.bias']['lr'] == pytest.approx(LR / 2)
    assert groups['backbone.blocks.1.attn.proj.bias']['lr'] == pytest.approx(LR / 4)


@pytest.mark.parametrize('rate', [None, 0, -0.5, 1.5, True, 'x'])
def test_wrong_rate(rate):
    options = {} if rate is None else dict(layer_decay_rate=rate)
    with pytest.raises(ValueError, match=r'layer_decay_rate in \(0, 1\], got'):
        groups_of(nn.Linear(1, 1), **options)


def test_no_backbone():
    with pytest.raises(
        ValueError, match='needs a backbone with get_layer_depth.*Linear'
    ):
        groups_of(nn.Linear(1, 1), layer_decay_rate=0.5)
