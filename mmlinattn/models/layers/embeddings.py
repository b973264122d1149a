"""Patch embeddings: from an image, or a map, to a smaller map.

An embedding has an attribute ``stride``: a side becomes ceil(side / stride). It takes
``in_channels`` of the image or map, ``embed_dims`` of its own map, and configs of its
norm layers, ``norm_cfg``, and of its activations, ``act_cfg``.

Legend: B batch, C channels, (H, W) map.
"""

from functools import partial
from typing import Any, Optional

import torch
from torch import Tensor, nn

from mmlinattn import parts
from mmlinattn.functional.precision import autocast_disabled
from mmlinattn.functional.tracing import are_equal, ceil_div
from mmlinattn.parts import build_activation, register


class LayerNorm2d(nn.LayerNorm):
    """LayerNorm over the channels of a map (B, C, H, W)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def build_norm(norm_cfg: Optional[dict], channels: int) -> nn.Module:
    """Return a norm layer for maps; ``type='LN'`` normalizes each position's
    channels."""
    if norm_cfg is None:
        return nn.Identity()
    if parts.type_name(norm_cfg) in ('LN', 'LayerNorm'):
        return LayerNorm2d(channels, eps=norm_cfg.get('eps', 1e-5))
    return parts.build_norm(norm_cfg, channels)


def conv_norm_act(
    in_channels: int,
    out_channels: int,
    norm_cfg: Optional[dict],
    act_cfg: Optional[dict],
    kernel_size: int = 3,
    padding: Optional[int] = None,
    **conv: Any,
) -> nn.Sequential:
    """Return a convolution with bias, a norm layer and an activation.

    The official weights have the bias, of which mmcv's ConvModule would warn each
    time. ``padding`` centers the kernel by default.
    """
    padding = kernel_size // 2 if padding is None else padding
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size, padding=padding, **conv),
        build_norm(norm_cfg, out_channels),
        build_activation(act_cfg) if act_cfg else nn.Identity(),
    )


def pad_to_strides(x: Tensor, stride: int) -> Tensor:
    """Zero-pad the right and the bottom of a map to whole strides."""
    height, width = x.shape[2:]
    wanted = ceil_div(height, stride) * stride, ceil_div(width, stride) * stride
    if are_equal(wanted, (height, width)):
        return x
    return nn.functional.pad(x, (0, wanted[1] - width, 0, wanted[0] - height))


class Embedding(nn.Sequential):
    """Convolutions of a map that is zero-padded to whole strides, in the dtype of their
    weights, autocast or not.

    Their input has no norm: it is an image, or a sum over all blocks so far, beyond
    float16 in extreme images. A BatchNorm behind it removes most of the gradient, but
    not the rounding errors: with bfloat16 convolutions, they are half of an
    unnormalized SOFT's gradient.
    """

    stride: int
    pads = True

    def forward(self, x: Tensor) -> Tensor:
        x = pad_to_strides(x, self.stride) if self.pads else x
        with autocast_disabled(x):
            return super().forward(x.to(self[0][0].weight.dtype))


@register
class ConvStem(Embedding):
    """Overlapping patch embedding of SOFT: three 3 x 3 Conv-BN-ReLU with
    strides 2, 1, 2, so a side becomes ceil(side / 4).

    Args:
        mid_channels (int): Channels in between.
        num_convs (int): Convolutions, at least two. All but the first and the last one
            have stride 1.
        last_act (bool): Gives the last one an activation, too.
    """

    stride = 4
    pads = False

    def __init__(
        self,
        in_channels: int,
        embed_dims: int,
        mid_channels: int = 32,
        norm_cfg: Optional[dict] = dict(type='BN'),
        act_cfg: Optional[dict] = dict(type='ReLU'),
        num_convs: int = 3,
        last_act: bool = True,
    ) -> None:
        mids = [mid_channels] * (num_convs - 1)
        acts = [act_cfg] * (num_convs - 1) + [act_cfg if last_act else None]
        strides = (2, *[1] * (num_convs - 2), 2)
        layers = zip((in_channels, *mids), (*mids, embed_dims), acts, strides)
        super().__init__(
            *(
                conv_norm_act(channels, out_channels, norm_cfg, act, stride=stride)
                for channels, out_channels, act, stride in layers
            )
        )


class Residual(nn.Sequential):
    """Layers with a shortcut."""

    def forward(self, x: Tensor) -> Tensor:
        return x + super().forward(x)


@register
class ResidualStem(Embedding):
    """Overlapping patch embedding of MLLA (arXiv 2405.16605): a 3 x 3 convolution of
    stride 2, a residual block of two, another of stride 2 to four times the channels,
    and a 1 x 1 one. They have norms and no biases.

    The residual block has half of the channels ``embed_dims``.

    Args:
        residual (bool): False, as in H-ViT^3, leaves out the block's shortcut, and
            gives its second convolution an activation.
        pads (bool): Zero-pads the image to whole patches of 4 x 4 first; False, as in
            VSSD, leaves odd sides to the padding of the convolutions.
    """

    stride = 4

    def __init__(
        self,
        in_channels: int,
        embed_dims: int,
        norm_cfg: Optional[dict] = dict(type='BN'),
        act_cfg: Optional[dict] = dict(type='ReLU'),
        residual: bool = True,
        pads: bool = True,
    ) -> None:
        conv = partial(conv_norm_act, norm_cfg=norm_cfg, bias=False)
        half, more = embed_dims // 2, 4 * embed_dims
        super().__init__()
        self.pads = pads
        self.first = conv(in_channels, half, act_cfg=act_cfg, stride=2)
        self.block = (Residual if residual else nn.Sequential)(
            conv(half, half, act_cfg=act_cfg),
            conv(half, half, act_cfg=None if residual else act_cfg),
        )
        self.last = nn.Sequential(
            conv(half, more, act_cfg=act_cfg, stride=2),
            conv(more, embed_dims, act_cfg=None, kernel_size=1),
        )


@register
class ConvEmbedding(Embedding):
    """One Conv-BN-ReLU; a side becomes ceil(side / stride).

    Patches overlap if ``kernel_size`` is larger than ``stride``. The map is
    zero-padded to whole strides first.

    Args:
        kernel_size (int): Side of a patch.
        stride (int): Distance between patches.
        padding (int, optional): Zeros all around the map of whole strides.
            Default: centers the kernel if patches overlap, otherwise none.

    Raises:
        ValueError: If, with ``padding``, the side of a map of whole strides does
            not become side / stride.
    """

    def __init__(
        self,
        in_channels: int,
        embed_dims: int,
        kernel_size: int = 3,
        stride: int = 2,
        norm_cfg: Optional[dict] = dict(type='BN'),
        act_cfg: Optional[dict] = dict(type='ReLU'),
        padding: Optional[int] = None,
    ) -> None:
        super().__init__()
        if padding is None:
            padding = (kernel_size - 1) // 2 if kernel_size > stride else 0
        if not kernel_size - stride <= 2 * padding < kernel_size:
            raise ValueError(
                'padding must be at least (kernel_size - stride) / 2 and below '
                f'kernel_size / 2, got padding={padding} for kernel_size='
                f'{kernel_size} and stride={stride}'
            )
        self.stride = stride
        self.layer = conv_norm_act(
            in_channels,
            embed_dims,
            norm_cfg,
            act_cfg,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
        )


@register
class InvertedMerging(Embedding):
    """Merging of MLLA (arXiv 2405.16605): a 1 x 1 convolution to four times the output
    channels, a depthwise 3 x 3 one of stride 2, and a 1 x 1 one with a norm.

    Args:
        pads (bool): Zero-pads odd maps first; see :class:`ResidualStem`.
    """

    stride = 2

    def __init__(
        self,
        in_channels: int,
        embed_dims: int,
        norm_cfg: Optional[dict] = dict(type='BN'),
        act_cfg: Optional[dict] = dict(type='ReLU'),
        pads: bool = True,
    ) -> None:
        more = 4 * embed_dims
        super().__init__(
            conv_norm_act(in_channels, more, None, act_cfg, kernel_size=1),
            conv_norm_act(more, more, None, act_cfg, stride=2, groups=more),
            conv_norm_act(more, embed_dims, norm_cfg, None, kernel_size=1),
        )
        self.pads = pads


@register
class PatchMerging(nn.Module):
    """Swin's merging: the channels of 2 x 2 neighbors are joined, normalized
    and projected (arXiv 2103.14030). Odd maps are zero-padded.
    """

    stride = 2

    def __init__(
        self,
        in_channels: int,
        embed_dims: int,
        norm_cfg: dict = dict(type='LN', eps=1e-5),
    ) -> None:
        super().__init__()
        self.norm = build_norm(norm_cfg, 4 * in_channels)
        self.reduction = nn.Linear(4 * in_channels, embed_dims, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x = pad_to_strides(x, self.stride)
        # the official order of the four positions: rows change first
        neighbors = [x[:, :, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        x = self.norm(torch.cat(neighbors, dim=1))
        return self.reduction(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
