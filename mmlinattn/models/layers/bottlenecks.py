"""Blocks of convolutions: MBConv, its fused form, and those of EfficientViT's stem.

Legend: B batch, C channels, (H, W) map.
"""

from functools import partial
from typing import Any, Optional

from torch import Tensor, nn

from mmlinattn.functional import depthwise_conv2d
from mmlinattn.functional.precision import is_autocast_to_float16

from .embeddings import conv_norm_act
from .residuals import DropPath

# largest input of a block in float16, whose convolutions have no norm before them
_LARGEST = 2.0**10


class DepthwiseConv2d(nn.Conv2d):
    """A depthwise convolution of a map (B, C, H, W) with a fast backward pass."""

    def forward(self, x: Tensor) -> Tensor:
        return depthwise_conv2d(x, self.weight, self.bias)


def depthwise(
    channels: int, norm_cfg: Optional[dict], act_cfg: dict, stride: int = 1
) -> nn.Sequential:
    """Return a 3 x 3 depthwise convolution, a norm or a bias, and an activation."""
    layers = conv_norm_act(
        channels,
        channels,
        norm_cfg,
        act_cfg,
        stride=stride,
        groups=channels,
        bias=norm_cfg is None,
    )
    if stride == 1:
        layers[0] = DepthwiseConv2d(
            channels, channels, 3, padding=1, groups=channels, bias=norm_cfg is None
        )
    return layers


def inverted_bottleneck(
    in_channels: int,
    out_channels: int,
    ratio: float,
    norm_cfg: dict,
    act_cfg: dict,
    stride: int = 1,
    normed: bool = True,
) -> nn.Sequential:
    """MBConv: a 1 x 1 convolution to ``ratio`` times the channels, a 3 x 3 depthwise
    one, and a 1 x 1 one. With ``normed=False``, the first two have a bias in place of a
    norm."""
    hidden = int(in_channels * ratio)
    inner = norm_cfg if normed else None
    return nn.Sequential(
        conv_norm_act(
            in_channels, hidden, inner, act_cfg, kernel_size=1, bias=not normed
        ),
        depthwise(hidden, inner, act_cfg, stride),
        conv_norm_act(hidden, out_channels, norm_cfg, None, kernel_size=1, bias=False),
    )


def fused_bottleneck(
    in_channels: int,
    out_channels: int,
    ratio: float,
    norm_cfg: dict,
    act_cfg: dict,
    stride: int = 1,
) -> nn.Sequential:
    """Fused MBConv: a 3 x 3 convolution to ``ratio`` times the channels, and a 1 x 1
    one."""
    hidden = int(in_channels * ratio)
    conv = partial(conv_norm_act, norm_cfg=norm_cfg, bias=False)
    return nn.Sequential(
        conv(in_channels, hidden, act_cfg=act_cfg, stride=stride),
        conv(hidden, out_channels, act_cfg=None, kernel_size=1),
    )


def stem_block(
    kind: str, channels: int, norm_cfg: dict, act_cfg: dict
) -> nn.Sequential:
    """Return two convolutions of the stem: 'separable', a depthwise and a 1 x 1 one, or
    'basic', both 3 x 3."""
    conv = partial(conv_norm_act, channels, channels, norm_cfg, bias=False)
    if kind == 'separable':
        return nn.Sequential(
            depthwise(channels, norm_cfg, act_cfg), conv(None, kernel_size=1)
        )
    return nn.Sequential(conv(act_cfg), conv(None))


def bounded(x: Tensor) -> Tensor:
    """Return a map as the convolutions of a block take it: within float16's range."""
    return x.clamp(-_LARGEST, _LARGEST) if is_autocast_to_float16(x) else x


class ConvBlock(nn.Module):
    """Convolutions of a map (B, C, H, W), with a shortcut unless they change its size.

    Args:
        layers (nn.Module): The convolutions.
        shortcut (bool): Adds the map to their output.
        drop_path (float): Rate of stochastic depth, with a shortcut.
    """

    def __init__(
        self, layers: nn.Module, shortcut: bool = True, drop_path: float = 0.0
    ) -> None:
        super().__init__()
        self.layers = layers
        self.shortcut = shortcut
        self.drop_path = DropPath(drop_path) if drop_path else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        out = self.layers(bounded(x))
        return x + self.drop_path(out) if self.shortcut else out


def conv_block(
    kind: str,
    in_channels: int,
    out_channels: int,
    ratio: float,
    stride: int = 1,
    normed: bool = True,
    drop_path: float = 0.0,
    **layers: Any,
) -> ConvBlock:
    """Return a bottleneck, which has a shortcut if its stride is 1.

    Args:
        kind (str): 'fused' for :func:`fused_bottleneck`, another one for
            :func:`inverted_bottleneck`.
        in_channels, out_channels, ratio, stride, normed: Of the bottleneck.
        drop_path (float): Rate of stochastic depth.
        **layers: ``norm_cfg`` and ``act_cfg``.
    """
    bottleneck: Any = fused_bottleneck
    if kind != 'fused':
        bottleneck = partial(inverted_bottleneck, normed=normed)
    convolutions = bottleneck(in_channels, out_channels, ratio, stride=stride, **layers)
    return ConvBlock(convolutions, shortcut=stride == 1, drop_path=drop_path)
