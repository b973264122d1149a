"""EfficientViT: convolutions on large maps, multi-scale linear attention on small ones.

Legend: B batch, C channels, (H, W) map, N = H * W tokens.
"""

from functools import partial
from typing import Any, NamedTuple, Optional, Union

import torch
from torch import Tensor, nn

from mmlinattn.functional import to_map, to_tokens
from mmlinattn.functional.tracing import is_transformed
from mmlinattn.parts import build_model, register

from ..layers.blocks import FeatScale, drop_path_rates
from ..layers.bottlenecks import (
    ConvBlock,
    bounded,
    conv_block,
    inverted_bottleneck,
    stem_block,
)
from ..layers.embeddings import Embedding, build_norm, conv_norm_act
from ..layers.initialization import ModuleList
from ..layers.padding import after_stride, by_size
from ..layers.residuals import DropPath
from ..layers.types import HW, Indices
from .base import BaseBackbone
from .options import check_config
from .pyramid import are_sizes_of_stages


class Series(NamedTuple):
    """What the sizes of a series share.

    Attributes:
        act_cfg (dict): Activation.
        norm_eps (float): Epsilon of the BatchNorms.
        stem (str): Kind of the stem's blocks.
        stages (tuple[str]): Kinds of the stages' blocks, 'mb', 'fused' or 'attention'.
        ratios (tuple[int]): Hidden channels of a block over its channels, by stage.
        first_ratios (tuple[int]): Those of a stage's first block, which has stride 2,
            over the channels of the map before.
        extra_block (tuple[bool]): Whether a stage's depth does not count this block.
    """

    act_cfg: dict
    norm_eps: float
    stem: str
    stages: tuple[str, ...]
    ratios: tuple[int, ...]
    first_ratios: tuple[int, ...]
    extra_block: tuple[bool, ...]


SERIES = {
    'b': Series(
        act_cfg=dict(type='HSwish'),
        norm_eps=1e-5,
        stem='separable',
        stages=('mb', 'mb', 'attention', 'attention'),
        ratios=(4, 4, 4, 4),
        first_ratios=(4, 4, 4, 4),
        extra_block=(False, False, True, True),
    ),
    'l': Series(
        act_cfg=dict(type='GELU', approximate='tanh'),
        norm_eps=1e-7,
        stem='basic',
        stages=('fused', 'fused', 'mb', 'attention'),
        ratios=(4, 4, 4, 6),
        first_ratios=(16, 16, 16, 24),
        extra_block=(True, True, True, True),
    ),
}
# stages whose inner convolutions have a norm; those of the others have a bias
NORMED = (True, True, False, False)


class StemConv(Embedding):
    """The first convolution, of stride 2."""

    stride = 2
    pads = False


class EfficientViTBlock(nn.Module):
    """Attention with a BatchNorm after it, and an inverted bottleneck as the FFN, each
    with a shortcut.

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads of the attention.
        attention (dict): Config of the attention.
        ratio (float): Hidden channels of the FFN over C.
        norm_cfg (dict): Norm layer.
        act_cfg (dict): Activation of the FFN.
        drop_path (float): Rate of stochastic depth.
        attn_scale (bool): AttnScale in the attention.
        feat_scale (bool): FeatScale on the attention's output.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        attention: dict,
        ratio: float,
        norm_cfg: dict,
        act_cfg: dict,
        drop_path: float = 0.0,
        attn_scale: bool = False,
        feat_scale: bool = False,
    ) -> None:
        super().__init__()
        self.attn = build_model(
            attention, embed_dims=embed_dims, num_heads=num_heads, attn_scale=attn_scale
        )
        self.feat_scale = FeatScale(embed_dims) if feat_scale else nn.Identity()
        self.norm = build_norm(norm_cfg, embed_dims)
        self.drop_path = DropPath(drop_path) if drop_path else nn.Identity()
        self.ffn = inverted_bottleneck(
            embed_dims, embed_dims, ratio, norm_cfg, act_cfg, normed=False
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return maps of the shape of the input, (B, C, H, W)."""
        hw_shape = (x.size(2), x.size(3))
        tokens = self.attn(to_tokens(bounded(x)), hw_shape)
        out = self.norm(to_map(self.feat_scale(tokens), hw_shape))
        x = x + self.drop_path(out)
        return x + self.drop_path(self.ffn(bounded(x)))


@register
class EfficientViT(BaseBackbone):
    """EfficientViT (*EfficientViT: Multi-Scale Linear Attention for High-Resolution
    Dense Prediction*, arXiv 2205.14756).

    A stem of stride 2 and two stages (series B) or three (series L) have convolutions
    alone, the other stages attention too. No norm follows the last block.

    Args:
        arch (str | dict): 'b0' to 'b3', 'l0' to 'l3', or a dict with ``embed_dims`` and
            ``depths``, lists of five with the stem's first, ``head_dims``, the channels
            of a head, and ``series``, 'b' or 'l'. A stage with attention, and every one
            of series L, has a block of stride 2 besides its depth.
        attention (dict, optional): Config of the attention, which reads maps without a
            norm. Default: :class:`~.multi_scale.MultiScaleLinearAttention`, whose
            bias is left to the BatchNorm after it.
        in_channels (int): Channels of the input image.
        drop_path_rate (float): Largest rate of stochastic depth; it grows linearly from
            0 over the blocks.
        norm_cfg (dict, optional): Norm layer. Its ``eps`` is 1e-5 (series B) or 1e-7
            (series L) by default, as in the public weights. Default: BatchNorm.
        attn_scale (bool): AttnScale in every attention.
        feat_scale (bool): FeatScale in every block with attention.
        Others: See :class:`~.base.BaseBackbone`.

    Raises:
        ValueError: If ``arch`` is no architecture.
    """

    arch_zoo = {
        name: dict(embed_dims=dims, depths=depths, head_dims=head, series=name[0])
        for name, dims, depths, head in (
            ('b0', [8, 16, 32, 64, 128], [1, 2, 2, 2, 2], 16),
            ('b1', [16, 32, 64, 128, 256], [1, 2, 3, 3, 4], 16),
            ('b2', [24, 48, 96, 192, 384], [1, 3, 4, 4, 6], 32),
            ('b3', [32, 64, 128, 256, 512], [1, 4, 6, 6, 9], 32),
            ('l0', [32, 64, 128, 256, 512], [1, 1, 1, 4, 4], 32),
            ('l1', [32, 64, 128, 256, 512], [1, 1, 1, 6, 6], 32),
            ('l2', [32, 64, 128, 256, 512], [1, 2, 2, 8, 8], 32),
            ('l3', [64, 128, 256, 512, 1024], [1, 2, 2, 8, 8], 32),
        )
    }
    arch_keys = ('embed_dims', 'depths', 'head_dims', 'series')
    default_init = [
        dict(type='TruncNormal', layer=['Conv2d', 'Linear'], std=0.02, bias=0.0),
        dict(type='Constant', layer='_BatchNorm', val=1.0, bias=0.0),
    ]

    def __init__(
        self,
        arch: Union[str, dict] = 'b1',
        attention: Optional[dict] = None,
        *,
        in_channels: int = 3,
        drop_path_rate: float = 0.0,
        norm_cfg: Optional[dict] = None,
        attn_scale: bool = False,
        feat_scale: bool = False,
        out_indices: Optional[Indices] = None,
        out_type: str = 'featmap',
        frozen_stages: int = -1,
        norm_eval: bool = False,
        with_cp: bool = False,
        mask_padding: Union[bool, str] = 'evaluation',
        init_cfg: Union[dict, list, None] = None,
    ) -> None:
        arch = self.resolve_arch(arch)
        series = SERIES[arch['series']]
        stem_dims, *dims = arch['embed_dims']
        stem_depth, *depths = arch['depths']
        super().__init__(
            in_channels,
            len(dims),
            out_indices=out_indices,
            out_type=out_type,
            frozen_stages=frozen_stages,
            norm_eval=norm_eval,
            with_cp=with_cp,
            mask_padding=mask_padding,
            init_cfg=init_cfg,
        )
        norm_cfg = check_config(norm_cfg or dict(type='BN'), 'norm_cfg')
        layers: dict[str, Any] = dict(
            norm_cfg={'eps': series.norm_eps, **norm_cfg}, act_cfg=series.act_cfg
        )
        attention = check_config(
            attention or dict(type='MultiScaleLinearAttention', proj_bias=False),
            'attention',
        )
        scales: dict[str, Any] = dict(attn_scale=attn_scale, feat_scale=feat_scale)
        self.depths = [
            depth + extra for depth, extra in zip(depths, series.extra_block)
        ]
        self.stage_channels = tuple(dims)
        self.stage_strides = tuple(4 * 2**i for i in range(len(dims)))
        rates = drop_path_rates(drop_path_rate, stem_depth + sum(self.depths))

        first = conv_norm_act(in_channels, stem_dims, **layers, stride=2, bias=False)
        self.stem = nn.Sequential(
            StemConv(first),
            *[
                ConvBlock(
                    stem_block(series.stem, stem_dims, **layers), drop_path=rates.pop(0)
                )
                for _ in range(stem_depth)
            ],
        )
        self.stages = ModuleList()
        for i, depth in enumerate(self.depths):
            kind, normed = series.stages[i], NORMED[i]
            before, ratio = arch['embed_dims'][i], series.first_ratios[i]
            blocks: list[nn.Module] = [
                conv_block(
                    kind, before, dims[i], ratio, stride=2, normed=normed, **layers
                )
            ]
            rates.pop(0)  # of this block, which has no shortcut
            options = dict(layers, ratio=series.ratios[i])
            if kind == 'attention':
                num_heads = dims[i] // arch['head_dims']
                block: Any = partial(EfficientViTBlock, dims[i], num_heads, attention)
                options.update(scales)
            else:
                block = partial(conv_block, kind, dims[i], dims[i], normed=normed)
            blocks += [
                block(drop_path=rates.pop(0), **options) for _ in range(1, depth)
            ]
            self.stages.append(nn.Sequential(*blocks))
        self.freeze()

    @classmethod
    def resolve_arch(cls, arch: Union[str, dict]) -> dict:
        arch = super().resolve_arch(arch)
        sizes = [arch['embed_dims'], arch['depths']]
        if not are_sizes_of_stages(sizes) or len(arch['depths']) != 5:
            raise ValueError(
                'embed_dims and depths of arch need a positive integer for the stem '
                f'and for each of four stages, got arch={arch}'
            )
        if arch['series'] not in SERIES:
            raise ValueError(
                f'series of arch must be one of {sorted(SERIES)}, got arch={arch}'
            )
        head_dims, kinds = arch['head_dims'], SERIES[arch['series']].stages
        attends = [
            dims
            for dims, kind in zip(arch['embed_dims'][1:], kinds)
            if kind == 'attention'
        ]
        if (
            not isinstance(head_dims, int)
            or head_dims < 1
            or any(dims % head_dims for dims in attends)
        ):
            raise ValueError(
                'head_dims of arch must be a positive integer that divides the '
                f'embed_dims of stages with attention, {attends}, got arch={arch}'
            )
        return arch

    def run(self, x: Tensor, sizes: Optional[list[HW]] = None) -> tuple[Tensor, ...]:
        if sizes is None:
            return tuple(self.run_stages(x))
        canvas = (x.size(2), x.size(3))

        def on_canvas(images: Tensor) -> list[Tensor]:
            both = (images.size(2), images.size(3)), canvas
            return [
                self.lay_back(out, *after_stride(both, stride))
                for out, stride in zip(self.run_stages(images), self.feature_strides)
            ]

        return tuple(by_size(on_canvas, x, sizes))

    def run_stages(self, x: Tensor) -> list[Tensor]:
        """Return the outputs of the returned stages for images (B, in_channels, H,
        W)."""
        if not is_transformed():  # vmap knows no layouts
            # on a CPU, convolutions are faster this way, and tokens are contiguous
            x = x.contiguous(memory_format=torch.channels_last)
        x, outs = self.run_blocks(self.stem, x), []
        for stage, (is_returned, _) in zip(self.stages, self.returned()):
            x = self.run_blocks(stage, x)
            if is_returned:
                outs.append(self.readout(to_tokens(x), (x.size(2), x.size(3))))
        return outs

    def run_blocks(self, blocks: nn.Sequential, x: Tensor) -> Tensor:
        """Return maps after the stem or a stage."""
        for block in blocks:
            x = self.run_block(block, x)
        return x

    def parts(self) -> list[nn.Module]:
        return [self.stem, *self.stages]

    def stage_of(self, param_name: str) -> int:
        parts = param_name.split('.')
        if parts[0] == 'stem':
            return -1
        inside = parts[0] == 'stages' and parts[1]
        return int(parts[1]) if inside else self.num_stages

    def layer_of(self, param_name: str) -> tuple[int, int]:
        num_layers = sum(self.depths) + 2
        stage = self.stage_of(param_name)
        if stage in (-1, self.num_stages):
            return (0 if stage < 0 else num_layers - 1), num_layers
        block = int(param_name.split('.')[2])
        return sum(self.depths[:stage]) + block + 1, num_layers
