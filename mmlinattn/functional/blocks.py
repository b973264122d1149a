"""Cuts a token map into blocks, and joins them again.

Legend: ... batch and heads, (H, W) map, N = H * W tokens, s side of a square
block or (s, t) sides of any, n blocks, d channels.
"""

import math
from typing import Union

from torch import Tensor
from torch.nn.functional import pad

from .maps import unflatten
from .tracing import is_exported

Shape = tuple[int, int]
Side = Union[int, Shape]


def square_side(size: int, name: str) -> int:
    """Side of a square that has this many tokens.

    Args:
        size (int): Number of tokens.
        name (str): Its name in an error message.

    Returns:
        int: The side.

    Raises:
        ValueError: If ``size`` is not a positive square number.
    """
    side = math.isqrt(size) if isinstance(size, int) and size > 0 else 0
    if not side or side**2 != size:
        raise ValueError(
            f'{name} must be a square number such as 49, 196 or 576, got {size!r}'
        )
    return side


def pad_map(
    x: Tensor, hw_shape: Shape, side: Side, centered: bool = False
) -> tuple[Tensor, Shape]:
    """Zero-pads a token map to whole blocks.

    Args:
        x (Tensor): (..., N, d).
        hw_shape (tuple[int]): (H, W).
        side (int | tuple[int]): s, or (s, t).
        centered (bool): Pads all around, the larger part at the right and
            bottom. Otherwise pads at the right and bottom only.

    Returns:
        tuple[Tensor, tuple[int]]: Tokens of the padded map (..., N', d), and the
        size of that map.
    """
    padded_shape = _whole_blocks(hw_shape, side)
    if not is_exported() and padded_shape == tuple(hw_shape):
        return x, padded_shape
    top, left = _offsets(padded_shape, hw_shape, centered)
    bottom = padded_shape[0] - hw_shape[0] - top
    right = padded_shape[1] - hw_shape[1] - left
    x = pad(unflatten(x, -2, hw_shape), (0, 0, left, right, top, bottom))
    return x.flatten(-3, -2), padded_shape


def crop_map(
    x: Tensor, padded_shape: Shape, hw_shape: Shape, centered: bool = False
) -> Tensor:
    """Undoes :func:`pad_map`: (..., N', d) to (..., N, d)."""
    top, left = _offsets(padded_shape, hw_shape, centered)
    height, width = hw_shape
    x = unflatten(x, -2, padded_shape)
    return x[..., top : top + height, left : left + width, :].flatten(-3, -2)


def blockify(x: Tensor, hw_shape: Shape, side: Side, centered: bool = False) -> Tensor:
    """Cuts a token map into blocks, zero-padded to whole ones.

    Args:
        x (Tensor): (..., N, d).
        hw_shape (tuple[int]): (H, W).
        side (int | tuple[int]): s, or (s, t).
        centered (bool): See :func:`pad_map`.

    Returns:
        Tensor: (..., n, s * t, d), blocks and their tokens in raster order.
    """
    x, (height, width) = pad_map(x, hw_shape, side, centered)
    rows, cols = _sides(side)
    x = unflatten(x, -2, (height // rows, rows, width // cols, cols))
    return x.transpose(-4, -3).flatten(-5, -4).flatten(-3, -2)


def unblockify(
    x: Tensor, hw_shape: Shape, side: Side, centered: bool = False
) -> Tensor:
    """Undoes :func:`blockify`: (..., n, s * t, d) to (..., N, d)."""
    padded_shape = _whole_blocks(hw_shape, side)
    grid = [padded // s for padded, s in zip(padded_shape, _sides(side))]
    x = unflatten(unflatten(x, -2, _sides(side)), -4, grid)
    x = x.transpose(-4, -3).flatten(-5, -2)
    return crop_map(x, padded_shape, hw_shape, centered)


def _sides(side: Side) -> Shape:
    return (side, side) if isinstance(side, int) else side


def _whole_blocks(hw_shape: Shape, side: Side) -> Shape:
    (height, width), (rows, cols) = hw_shape, _sides(side)
    return (height + rows - 1) // rows * rows, (width + cols - 1) // cols * cols


def _offsets(padded_shape: Shape, hw_shape: Shape, centered: bool) -> Shape:
    """Rows above and columns left of the map in the padded one."""
    if not centered:
        return 0, 0
    return (padded_shape[0] - hw_shape[0]) // 2, (padded_shape[1] - hw_shape[1]) // 2
