"""Makers of the models that are measured.

They import what they need when they are called: a machine without mmdet can still
measure everything else.
"""

from functools import partial
from importlib import import_module
from pathlib import Path

from torch import nn

from .cases import Within, shapes_of

CONFIGS = Path(__file__).resolve().parents[2] / 'configs'

# The references of mmdet, with their channels, as in its configs.
PVT_V2_B1 = dict(
    type='mmdet.PyramidVisionTransformerV2', embed_dims=64, num_layers=[2, 2, 2, 2]
)
SWIN_T = dict(type='mmdet.SwinTransformer', drop_path_rate=0.2)
CHANNELS = {PVT_V2_B1['type']: [64, 128, 320, 512], SWIN_T['type']: [96, 192, 384, 768]}


def backbone(type, context=None, **cfg):
    """A function that builds a backbone from its config, whose type has no scope if it
    is ours, and calls it in a context, if one is given."""

    def build():
        from mmengine.registry import MODELS

        scope, _, name = type.rpartition('.')
        scope = scope or 'mmlinattn'
        import_module(f'{scope}.models')
        model = initialized(MODELS.build(dict(cfg, type=f'{scope}.{name}')))
        return Within(model, context) if context else model

    return build


def initialized(model):
    """A model with the weights that training starts from."""
    if next(model.parameters()).is_meta:
        return model  # it has sizes only
    from mmlinattn.utils.quiet import quiet

    with quiet():  # MMEngine prints every parameter
        model.init_weights()
    return model


class Detector(nn.Module):
    """A detector whose output is a loss in training, detections otherwise.

    ``work`` has the shapes of what its neck and its dense head gave last.
    """

    def __init__(self, detector):
        super().__init__()
        self.detector = detector
        self.work = {}
        for name, module in detector.named_children():
            if name == 'neck' or name.endswith('head'):
                module.register_forward_hook(partial(self.note, name))

    def _apply(self, *args):
        super()._apply(*args)
        # only its own method tells the preprocessor
        self.detector.to(next(self.detector.parameters()).device)
        return self

    def note(self, name, module, inputs, outs):
        if not name.startswith('roi'):
            self.work[name] = shapes_of(outs)

    def forward(self, batch):
        data = self.detector.data_preprocessor(batch, self.training)
        if not self.training:
            return self.detector(**data, mode='predict')
        losses = self.detector(**data, mode='loss')
        return self.detector.parse_losses(losses)[0]


def detector(config, backbone=None):
    """A function that builds the detector of a config, a path inside configs/ or
    ``mmdet::NAME``, with a backbone of mmdet in place of the config's, if given."""

    def build():
        import_module('mmdet.models')
        from mmdet.registry import MODELS
        from mmengine.hub import get_config
        from mmengine.model import revert_sync_batchnorm
        from mmengine.registry import DefaultScope

        from mmlinattn.utils import load_config

        if '::' in config:
            cfg = get_config(config)
            cfg.model.backbone.init_cfg = None
        else:
            cfg = load_config(str(CONFIGS / config))
        if backbone is not None:
            levels = cfg.model.backbone.get('out_indices', range(4))
            channels = CHANNELS[backbone['type']]
            cfg.model.backbone = dict(backbone, out_indices=levels)
            cfg.model.neck.in_channels = [channels[i] for i in levels]
        with DefaultScope.overwrite_default_scope(cfg.default_scope):
            return Detector(revert_sync_batchnorm(initialized(MODELS.build(cfg.model))))

    return build


def detection_batch(shape, dtype, with_mask):
    """A batch of noise with ten objects an image, for :class:`Detector`."""
    from mmdet.testing import demo_mm_inputs

    count, options = shape[0], dict(num_classes=80, with_mask=with_mask)
    shapes, num_items = [shape[1:]] * count, [10] * count
    return (demo_mm_inputs(count, shapes, num_items=num_items, **options),)


# Every attention in all blocks of the same Swin-T, as options of SwinTransformer. What
# has no positions of its own gets LePE, as in the ELFATT paper; stored positions and
# biases are those of maps at 224 x 224.
SIDES = (56, 28, 14, 7)
SOFT, SOFTPP = (
    [
        dict(
            type='SoftmaxFreeAttention',
            sampling_ratio=ratio,
            kernel_size=side,
            attn_norm=attn_norm,
        )
        for ratio, side in zip((8, 4, 2, 1), (9, 5, 3, 3))
    ]
    for attn_norm in (False, True)
)
ZOO = {
    'windows': dict(attention='local'),
    'softmax': dict(attention='global'),
    # its heads are even in number: CSWin-T's
    'cross-shaped windows': dict(
        arch=dict(embed_dims=96, depths=[2, 2, 6, 2], num_heads=[2, 4, 8, 16]),
        attention=[
            dict(type='CrossShapedWindowAttention', stripe_width=width)
            for width in (1, 2, 7, 7)
        ],
    ),
    'SOFT': dict(attention=SOFT),
    'SOFT++': dict(attention=SOFTPP),
    'ELFATT': dict(attention=dict(type='ELFATT', block_size=196)),
    'efficient': dict(attention=dict(type='EfficientAttention', lepe=True)),
    'agent': dict(
        attention=[
            dict(type='AgentAttention', num_agents=num, map_side=side)
            for num, side in zip((9, 16, 49, 49), SIDES)
        ]
    ),
    'focused': dict(
        attention=[dict(type='FocusedLinearAttention', map_side=side) for side in SIDES]
    ),
    'InLine': dict(attention=dict(type='InLineAttention')),
    'PolaFormer': dict(
        attention=[dict(type='PolaFormerAttention', map_side=side) for side in SIDES]
    ),
    'MLLA': dict(attention=dict(type='MLLAAttention')),
    'VSSD': dict(attention=dict(type='VSSDAttention')),
    'EfficientViT': dict(attention=dict(type='MultiScaleLinearAttention')),
    'RALA': dict(attention=dict(type='RankAugmentedAttention')),
    'MALA': dict(attention=dict(type='MagnitudeAwareAttention')),
    'ViT^3': dict(attention=dict(type='TTTAttention')),
    'Linformer': dict(
        attention=[dict(type='LinformerAttention', sr_ratio=r) for r in (8, 4, 2, 1)]
    ),
    'Performer': dict(attention=dict(type='PerformerAttention', lepe=True)),
    'Nyström': dict(attention=dict(type='NystromAttention', num_landmarks=49)),
}
