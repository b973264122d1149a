"""Depthwise convolution of tokens."""

import math
from typing import Optional

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from mmlinattn.functional import (
    block_shape_on,
    blockify,
    depthwise_conv2d,
    to_map,
    to_tokens,
    unblockify,
    unflatten,
)
from mmlinattn.functional.blocks import Sides
from mmlinattn.functional.tracing import is_exported

from .types import HW


class DepthwiseConv(nn.Conv2d):
    """Depthwise convolution of the tokens of a map.

    Of the values, and added to the attention's output, it is the locally-enhanced
    positional encoding (LePE) of *CSWin Transformer: A General Vision Transformer
    Backbone with Cross-Shaped Windows* (arXiv 2107.00652).

    Args:
        embed_dims (int): Channels C.
        kernel_size (int): Side of the filters, odd.
        bias (bool): Adds a bias.

    Raises:
        ValueError: If ``kernel_size`` is even.
    """

    def __init__(
        self, embed_dims: int, kernel_size: int = 3, bias: bool = True
    ) -> None:
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(f'kernel_size must be odd, got {kernel_size}')
        super().__init__(
            embed_dims,
            embed_dims,
            kernel_size,
            padding=kernel_size // 2,
            groups=embed_dims,
            bias=bias,
        )

    def forward(  # type: ignore[override]
        self,
        v: Tensor,
        hw_shape: HW,
        block_shape: Optional[Sides] = None,
        centered: bool = False,
    ) -> Tensor:
        """Convolve a map of values, or each of its blocks separately.

        Args:
            v (Tensor): (B, N, C), N = H * W + extra tokens, which come
                first. Extra tokens have no neighbors and get zeros.
            hw_shape (tuple[int]): (H, W).
            block_shape (tuple[int | None], optional): Sides of the blocks; None is that
                of the map. Default: (H, W).
            centered (bool): See :func:`mmlinattn.functional.pad_map`.

        Returns:
            Tensor: (B, N, C).
        """
        num_extra = v.size(1) - math.prod(hw_shape)
        if block_shape is not None:
            blocks = blockify(v, hw_shape, block_shape, centered)
            shape = block_shape_on(hw_shape, block_shape)
            out = self.convolve(blocks.flatten(0, 1), shape)
            out = unflatten(out, 0, blocks.shape[:2])
            return unblockify(out, hw_shape, block_shape, centered)
        if not is_exported() and not num_extra:
            return self.convolve(v, hw_shape)
        return pad(self.convolve(v[:, num_extra:], hw_shape), (0, 0, num_extra, 0))

    def convolve_map(self, x: Tensor, hw_shape: HW) -> Tensor:
        """Convolve the map's tokens of (B, N, C); extra ones stay as they are."""
        out = self(x, hw_shape)
        num_extra = x.size(1) - math.prod(hw_shape)
        if is_exported() or num_extra:
            out = torch.cat((x[:, :num_extra], out[:, num_extra:]), 1)
        return out

    def convolve(self, v: Tensor, hw_shape: HW) -> Tensor:
        """Return values (B, H * W, C) to values (B, H * W, C)."""
        return to_tokens(depthwise_conv2d(to_map(v, hw_shape), self.weight, self.bias))
