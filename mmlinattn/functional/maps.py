"""Tokens as a map, and a map as tokens.

Legend: ... batch and heads, (H, W) map, N = H * W tokens, d channels.
"""

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .tracing import is_exported


def unflatten(x: Tensor, dim: int, sizes: Sequence[Any]) -> Tensor:
    """Return a view with one axis split into several, as
    :meth:`torch.Tensor.unflatten`.

    The export of that method to ONNX makes constants of the sizes that follow.

    Args:
        x (Tensor): Any tensor.
        dim (int): The axis.
        sizes (Sequence[int]): Its new sizes; one may be -1.

    Returns:
        Tensor: The view.
    """
    dim %= x.dim()
    return x.view(*x.shape[:dim], *sizes, *x.shape[dim + 1 :])


def to_map(tokens: Tensor, hw_shape: Sequence[Any]) -> Tensor:
    """(..., N, d) as a map (..., d, H, W)."""
    # not of the transposed tokens: a view of one image would have strides that make
    # BatchNorm's backward pass wrong on a CPU
    dim = tokens.dim()  # an export to ONNX takes no negative axes here
    return unflatten(tokens, -2, hw_shape).movedim(dim, dim - 2)


def to_tokens(maps: Tensor) -> Tensor:
    """Return a map (..., d, H, W) as (..., N, d)."""
    # not flatten(-2): the strides of its gradient for one image make BatchNorm's
    # backward pass wrong on a CPU
    dim = maps.dim()  # as above
    return maps.movedim(dim - 3, dim - 1).flatten(-3, -2)


def without_extra_tokens(x: Tensor, hw_shape: Sequence[Any]) -> Tensor:
    """Return the map's tokens of (B, N, C), N = extra tokens + H * W."""
    num_extra = x.size(1) - math.prod(hw_shape)
    return x[:, num_extra:] if is_exported() or num_extra else x
