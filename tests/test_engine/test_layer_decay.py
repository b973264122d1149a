import pytest
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, init_default_scope
from torch import nn

SOFT = dict(
    type='mmlinattn.SOFTPlusPlus',
    arch=dict(embed_dims=[8, 16, 24, 32], depths=[1, 2, 1, 1], num_heads=[1, 2, 3, 4]),
)
DEIT = dict(
    type='mmlinattn.VisionTransformer',
    arch=dict(embed_dims=16, num_layers=3, num_heads=2),
)
LR, DECAY = 1e-3, 0.05


def classifier(**options):
    init_default_scope('mmpretrain')
    cfg = dict(
        type='ImageClassifier',
        backbone=dict(DEIT, out_type='cls_token', **options),
        head=dict(type='LinearClsHead', num_classes=2, in_channels=16),
    )
    return MODELS.build(cfg)


def groups_of(model, **paramwise_cfg):
    """Settings of each parameter by its name; checks that all are there."""
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


DENSE = {
    'backbone.stages.0.embedding.0.0.weight': 0,
    'backbone.stages.0.pos_embed.table': 0,
    'backbone.stages.0.blocks.0.attn.q.weight': 1,
    'backbone.stages.1.embedding.layer.0.bias': 2,
    'backbone.stages.1.blocks.1.norm1.weight': 3,
    'backbone.stages.3.cls_token': 5,
    'backbone.norm3.weight': 6,
}


def test_dense_models():
    """Every parameter of a detector or segmentor trains with the rate of its layer."""
    parts = dict(backbone=MODELS.build(SOFT), decode_head=nn.Conv2d(32, 2, 1))
    model = nn.ModuleDict(parts)
    groups = groups_of(model, layer_decay_rate=0.5)
    assert groups.keys() == {k for k, x in model.named_parameters() if x.requires_grad}
    last = max(DENSE.values())
    for name, layer in DENSE.items():
        assert groups[name]['lr'] == pytest.approx(LR * 0.5 ** (last - layer)), name
    outside = [name for name in groups if not name.startswith('backbone.')]
    assert outside and all(groups[name]['lr'] == LR for name in outside)
    assert all(group['weight_decay'] == DECAY for group in groups.values())


def test_same_rates_as_mmpretrain():
    """Its constructor takes only classifiers."""
    model = classifier()
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
    model = classifier(frozen_stages=1)
    groups = groups_of(
        model,
        layer_decay_rate=0.5,
        custom_keys={'head': dict(lr_mult=10), 'qkv': dict(lr_mult=2)},
    )
    assert not [x for x in groups if 'blocks.0' in x or 'cls_token' in x]
    assert groups['head.fc.bias']['lr'] == pytest.approx(10 * LR)
    assert groups['backbone.blocks.1.attn.qkv.bias']['lr'] == pytest.approx(LR / 2)
    assert groups['backbone.blocks.1.attn.proj.bias']['lr'] == pytest.approx(LR / 4)


@pytest.mark.parametrize(
    'options, message',
    [
        ({}, r'layer_decay_rate in \(0, 1\], got layer_decay_rate=None'),
        (dict(layer_decay_rate=1.5), r'layer_decay_rate in \(0, 1\], got .*1.5'),
        (dict(layer_decay_rate=0.5), 'needs a backbone with get_layer_depth.*Linear'),
    ],
)
def test_refused(options, message):
    with pytest.raises(ValueError, match=message):
        groups_of(nn.Linear(1, 1), **options)
