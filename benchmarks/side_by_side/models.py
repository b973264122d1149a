"""Makers of the models that are measured.

They import what they need when they are called: a machine without mmdet can still
measure everything else.
"""

from functools import partial
from importlib import import_module
from importlib.util import find_spec
from math import isqrt, prod
from pathlib import Path

import torch
from torch import nn

from .cases import Within, shapes_of, unfused

CONFIGS = Path(__file__).resolve().parents[2] / 'configs'

# The references of mmdet, with their channels, as in its configs.
PVT_V2_B1 = dict(
    type='mmdet.PyramidVisionTransformerV2', embed_dims=64, num_layers=[2, 2, 2, 2]
)
SWIN_T = dict(type='mmdet.SwinTransformer', drop_path_rate=0.2)
CHANNELS = {PVT_V2_B1['type']: [64, 128, 320, 512], SWIN_T['type']: [96, 192, 384, 768]}


def backbone(type, context=None, **cfg):
    """A function that builds a backbone from its config.

    Args:
        type (str): Registered name, ours without scope.
        context (Callable, optional): Makes a context to call it in.
        **cfg: The rest of the config.
    """

    def build():
        from mmengine.registry import MODELS

        scope = type.rpartition('.')[0] or 'mmlinattn'
        import_module(f'{scope}.models')
        model = initialized(
            MODELS.build(dict(cfg, type=f'{scope}.{type.rpartition(".")[2]}'))
        )
        return Within(model, context) if context else model

    return build


def references(image_shape):
    """Functions that build PVTv2-B1 and Swin-T, by name: mmdet's, or timm's where
    mmdet is missing."""
    if find_spec('mmdet') is not None:
        return {
            'PVTv2-B1 (mmdet)': backbone(**PVT_V2_B1),
            'Swin-T (mmdet)': backbone(**SWIN_T),
        }
    swin = dict(img_size=image_shape, strict_img_size=False, drop_path_rate=0.2)
    return {
        'PVTv2-B1 (timm)': timm_backbone('pvt_v2_b1'),
        'Swin-T (timm)': timm_backbone('swin_tiny_patch4_window7_224', **swin),
    }


def timm_backbone(name, **options):
    """A function that builds a backbone of timm without its weights.

    Args:
        name (str): As timm has it.
        **options: Of ``timm.create_model``.
    """

    def build():
        import timm

        return timm.create_model(name, features_only=True, **options)

    return build


def initialized(model):
    """A model with the weights that training starts from."""
    if next(model.parameters()).is_meta:
        return model  # it has sizes only
    from mmlinattn.utils.quiet import quiet

    with quiet():  # MMEngine prints every parameter
        model.init_weights()
    return model


def scaled(build):
    """Like ``build``, its scaling vectors drawn from N(0, 0.1)."""

    def build_scaled():
        from mmlinattn.weights.transfer import is_scaling_vector

        model = build()
        with torch.no_grad():
            for name, param in model.named_parameters():
                if is_scaling_vector(name):
                    param.normal_(std=0.1)
        return model

    return build_scaled


class Detector(nn.Module):
    """A detector whose output is a loss in training, detections otherwise.

    ``work`` has the shapes of what its neck and its dense head gave last. In mixed
    precision neck and heads return float32: mmcv's RoIAlign and NMS know
    no bfloat16.
    """

    def __init__(self, detector):
        super().__init__()
        self.detector = detector
        self.work = {}
        for name, module in detector.named_modules():
            if name == 'neck' or name.endswith('head'):
                module.register_forward_hook(partial(self.after, name))

    def after(self, name, module, inputs, outs):
        """Notes the shapes of a part of the detector; its outputs in float32."""
        if '.' not in name:
            self.work[name] = shapes_of(outs)
        return as_float32(outs)

    def forward(self, batch):
        data = self.detector.data_preprocessor(batch, self.training)
        if not self.training:
            return self.detector(**data, mode='predict')
        losses = self.detector(**data, mode='loss')
        return self.detector.parse_losses(losses)[0]


def as_float32(outs):
    """Tensors in tuples and lists, or one alone, in float32."""
    if isinstance(outs, torch.Tensor):
        return outs.float()
    return type(outs)(as_float32(out) for out in outs)


def detector(config, backbone=None):
    """A function that builds the detector of one of our configs.

    Args:
        config (str): Path inside configs/, or mmdet's as ``mmdet::NAME``.
        backbone (dict, optional): A backbone of mmdet in place of the config's, for the
            same levels.
    """

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

    return (
        demo_mm_inputs(
            shape[0],
            [shape[1:]] * shape[0],
            num_items=[10] * shape[0],
            num_classes=80,
            with_mask=with_mask,
        ),
    )


class TokenModel(nn.Module):
    """Layers on the tokens of a map (B, C, H, W).

    Args:
        layers (Sequence[nn.Module]): Called with (B, N, C) and (H, W).
    """

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, maps):
        x, hw_shape = maps.flatten(2).mT, tuple(maps.shape[2:])
        for layer in self.layers:
            x = layer(x, hw_shape)
        return x


class GridSampler(nn.Module):
    """SOFT's sampler with so many landmarks on any map: means of a grid's cells,
    LayerNorm and GELU.

    Args:
        head_dims (int): Channels d of a head.
        side (int): Cells along each side.
    """

    def __init__(self, head_dims, side):
        super().__init__()
        self.side = side
        self.norm = nn.LayerNorm(head_dims)

    def forward(self, q, hw_shape):
        from mmlinattn.models.attentions.landmarks import pool_map

        return nn.functional.gelu(self.norm(pool_map(q, hw_shape, self.side)))


# Attentions of the memory suite by name: m landmarks, features, agents or keys.
LINEAR = {
    'Linformer': lambda m, n: dict(
        type='LinformerAttention', sr_ratio=max(round((n / m) ** 0.5), 1)
    ),
    'Performer': lambda m, n: dict(type='PerformerAttention', num_features=m),
    'Nyströmformer': lambda m, n: dict(type='NystromAttention', num_landmarks=m),
    'SOFT': lambda m, n: dict(
        type='SoftmaxFreeAttention', attn_norm=False, kernel_size=3
    ),
    'SOFT++': lambda m, n: dict(type='SoftmaxFreeAttention', kernel_size=3),
    'ELFATT': lambda m, n: dict(type='ELFATT', block_size=m),
    'efficient': lambda m, n: dict(type='EfficientAttention'),
    'agent': lambda m, n: dict(type='AgentAttention', num_agents=m),
    'flatten': lambda m, n: dict(type='FocusedLinearAttention'),
}
SOFTMAX = {'softmax, unfused': unfused, 'softmax, fused': None}

# Every attention in all blocks of the same Swin-T, as options of SwinTransformer. What
# has no positions of its own gets LePE, as in the ELFATT paper; stored positions and
# biases are those of maps at 224 x 224.
SIDES = (56, 28, 14, 7)
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
    **{
        name: dict(
            attention=[
                dict(
                    type='SoftmaxFreeAttention',
                    sampling_ratio=ratio,
                    kernel_size=side,
                    attn_norm=name == 'SOFT++',
                )
                for ratio, side in zip((8, 4, 2, 1), (9, 5, 3, 3))
            ]
        )
        for name in ('SOFT', 'SOFT++')
    },
    'ELFATT': dict(attention=dict(type='ELFATT', block_size=196)),
    'efficient': dict(attention=dict(type='EfficientAttention', lepe=True)),
    'agent': dict(
        attention=[
            dict(type='AgentAttention', num_agents=num, map_side=side)
            for num, side in zip((9, 16, 49, 49), SIDES)
        ]
    ),
    'focused': dict(
        attention=[dict(type='FocusedLinearAttention', map_side=x) for x in SIDES]
    ),
    'InLine': dict(attention=dict(type='InLineAttention')),
    'PolaFormer': dict(
        attention=[dict(type='PolaFormerAttention', map_side=x) for x in SIDES]
    ),
    'MLLA': dict(attention=dict(type='MLLAAttention')),
    'RALA': dict(attention=dict(type='RankAugmentedAttention')),
    'MALA': dict(attention=dict(type='MagnitudeAwareAttention')),
    'ViT^3': dict(attention=dict(type='TTTAttention')),
    'Linformer': dict(
        attention=[dict(type='LinformerAttention', sr_ratio=r) for r in (8, 4, 2, 1)]
    ),
    'Performer': dict(attention=dict(type='PerformerAttention', lepe=True)),
    'Nyström': dict(attention=dict(type='NystromAttention', num_landmarks=49)),
}


def attention_stack(name, shape, num_landmarks, num_heads, num_layers=None):
    """A function that builds layers with one of the attentions above.

    Args:
        name (str): A key of ``LINEAR`` or ``SOFTMAX``.
        shape (tuple[int]): The map's, (B, C, H, W).
        num_landmarks (int): m, a square number.
        num_heads (int): h.
        num_layers (int, optional): Whole transformer blocks; the attention
            alone if not given.
    """

    def build():
        from mmlinattn.models.attentions import SoftmaxFreeAttention
        from mmlinattn.models.layers import TransformerBlock
        from mmlinattn.registry import build_model

        cfg = dict(type='SoftmaxAttention')
        if name in LINEAR:
            cfg = LINEAR[name](num_landmarks, prod(shape[2:]))
        if num_layers is None:
            layers = [build_model(cfg, embed_dims=shape[1], num_heads=num_heads)]
        else:
            layers = [
                TransformerBlock(shape[1], num_heads, cfg) for _ in range(num_layers)
            ]
        model = TokenModel(layers)
        for module in model.modules():
            if isinstance(module, SoftmaxFreeAttention):
                module.sampler = GridSampler(module.head_dims, isqrt(num_landmarks))
        context = SOFTMAX.get(name)
        return Within(model, context) if context else model

    return build
