"""Makers of the models that are measured.

They import what they need when they are called: a machine without mmdet can still
measure everything else.
"""

from functools import partial
from importlib import import_module
from pathlib import Path

import torch
from torch import nn

from .cases import Within, shapes_of

CONFIGS = Path(__file__).resolve().parents[2] / 'configs'

# The references, as in mmdet's configs.
PVT_V2_B1 = dict(
    type='mmdet.PyramidVisionTransformerV2', embed_dims=64, num_layers=[2, 2, 2, 2]
)
SWIN_T = dict(type='mmdet.SwinTransformer', drop_path_rate=0.2)
RESNET_50 = dict(
    type='mmdet.ResNet',
    depth=50,
    frozen_stages=1,
    norm_cfg=dict(type='BN', requires_grad=True),
    norm_eval=True,
    style='pytorch',
)


def timm_config(name):
    """Return the config by which a backbone of timm stands in configs of mm's
    libraries."""
    return dict(
        type='mmpretrain.TIMMBackbone',
        model_name=name,
        features_only=True,
        pretrained=False,
    )


def backbone(type, context=None, change=None, **cfg):
    """Return a function that builds a backbone from its config, whose type has no scope
    if it is ours, changes it by ``change``, and calls it in a context, if they are
    given."""

    def build():
        from mmengine.registry import MODELS

        scope, _, name = type.rpartition('.')
        scope = scope or 'mmlinattn'
        import_module(f'{scope}.models')
        model = initialized(MODELS.build(dict(cfg, type=f'{scope}.{name}')))
        if change is not None:
            change(model)
        return Within(model, context) if context else model

    return build


def fuse_attention(model):
    """Let PyTorch's attention modules compute by its fused kernels: they write the
    whole attention matrix where a caller leaves ``need_weights`` as it is, as mmdet's
    PVTv2 does, which does not use it.

    Raises:
        ValueError: If the model has no such module.
    """
    modules = [x for x in model.modules() if isinstance(x, nn.MultiheadAttention)]
    if not modules:
        raise ValueError(f'{type(model).__name__} has no nn.MultiheadAttention')
    for module in modules:
        module.forward = partial(module.forward, need_weights=False)


class ChannelsFirst(nn.Module):
    """A model whose maps (B, H, W, C) become (B, C, H, W)."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        maps = self.model(x)
        maps = maps.values() if isinstance(maps, dict) else maps
        return tuple(out.permute(0, 3, 1, 2).contiguous() for out in maps)


def timm_maps(name, **options):
    """timm's backbone of a name, with its maps of strides 4 to 32."""
    import timm

    return timm.create_model(name, features_only=True, **options)


def timm_swin():
    """timm's Swin-T, which takes images of any size."""
    return ChannelsFirst(
        timm_maps('swin_tiny_patch4_window7_224', strict_img_size=False)
    )


def torchvision_swin():
    """torchvision's Swin-T: its maps after each stage."""
    from torchvision.models import swin_t
    from torchvision.models.feature_extraction import create_feature_extractor

    return ChannelsFirst(
        create_feature_extractor(swin_t(), [f'features.{i}' for i in (1, 3, 5, 7)])
    )


def initialized(model):
    """Return a model with the weights that training starts from."""
    if next(model.parameters()).is_meta:
        return model  # it has sizes only
    from mmlinattn.utils.log import quiet

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


def map_channels(backbone):
    """Return channels of a backbone's maps, in order of its ``out_indices``."""
    from mmengine.registry import MODELS

    scope, _, _ = backbone['type'].rpartition('.')
    import_module(f'{scope}.models')
    with torch.no_grad():
        return [
            out.size(1) for out in MODELS.build(backbone)(torch.zeros(1, 3, 64, 64))
        ]


def detector(config, backbone=None, change=None):
    """Return a function that builds the detector of a config, a path inside configs/ or
    ``mmdet::NAME``, with another library's backbone in place of the config's, if given,
    and changes the backbone by ``change``."""

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
            cfg.model.backbone = dict(backbone, out_indices=tuple(levels))
            cfg.model.neck.in_channels = map_channels(cfg.model.backbone)
        with DefaultScope.overwrite_default_scope(cfg.default_scope):
            model = revert_sync_batchnorm(initialized(MODELS.build(cfg.model)))
        if change is not None:
            change(model.backbone)
        return Detector(model)

    return build


def detection_batch(shape, dtype, with_mask):
    """Return a batch of noise with ten objects an image, for :class:`Detector`."""
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
    'NaLaFormer': dict(attention=dict(type='NormAwareLinearAttention')),
    'ViT^3': dict(attention=dict(type='TTTAttention')),
    'Linformer': dict(
        attention=[dict(type='LinformerAttention', sr_ratio=r) for r in (8, 4, 2, 1)]
    ),
    'Performer': dict(attention=dict(type='PerformerAttention', lepe=True)),
    'Nyström': dict(attention=dict(type='NystromAttention', num_landmarks=49)),
}
