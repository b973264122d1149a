"""Cuts a token map into blocks, and joins them again.

Legend: ... batch and heads, (H, W) map, N = H * W tokens, s side of a square
block or (s, t) sides of any, n blocks, d channels.
"""

import math
from collections.abc import Sequence
from typing import Any, Optional, Union

import torch
from torch import Tensor
from torch.nn.functional import pad

from .maps import unflatten
from .tracing import are_equal, ceil_div, is_exported, is_traced

Shape = tuple[int, int]
# of a block; None: that of the map
Sides = Sequence[Optional[int]]
Side = Union[int, Sides]


def square_side(size: int, name: str) -> int:
    """Return side of a square that has this many tokens.

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
    """Zero-pad a token map to whole blocks.

    Args:
        x (Tensor): (..., N, d).
        hw_shape (tuple[int]): (H, W).
        side (int | tuple[int | None]): s, or (s, t); None is the map's side.
        centered (bool): Pads all around, the larger part at the right and
            bottom. Otherwise pads at the right and bottom only.

    Returns:
        tuple[Tensor, tuple[int]]: Tokens of the padded map (..., N', d), and the
        size of that map.
    """
    padded_shape = _whole_blocks(hw_shape, side)
    if are_equal(padded_shape, hw_shape):
        return x, padded_shape
    x = _pad(unflatten(x, -2, hw_shape), padded_shape, hw_shape, centered)
    return x.flatten(-3, -2), padded_shape


def crop_map(
    x: Tensor, padded_shape: Shape, hw_shape: Shape, centered: bool = False
) -> Tensor:
    """Undo :func:`pad_map`: (..., N', d) to (..., N, d)."""
    if are_equal(padded_shape, hw_shape):
        return x
    maps = unflatten(x, -2, padded_shape)
    return _crop(maps, padded_shape, hw_shape, centered).flatten(-3, -2)


def blockify(x: Tensor, hw_shape: Shape, side: Side, centered: bool = False) -> Tensor:
    """Cut a token map into blocks, zero-padded to whole ones.

    Args:
        x (Tensor): (..., N, d).
        hw_shape (tuple[int]): (H, W).
        side (int | tuple[int | None]): See :func:`pad_map`.
        centered (bool): See :func:`pad_map`.

    Returns:
        Tensor: (..., n, s * t, d), blocks and their tokens in raster order.
    """
    (num_rows, num_cols), (rows, cols) = _grid(hw_shape, side)
    maps = unflatten(x, -2, hw_shape)
    maps = _pad(maps, _whole_blocks(hw_shape, side), hw_shape, centered)
    blocks = _split_sides(maps, (num_rows, rows, num_cols, cols))
    if _is_compiled():  # it would ask which sizes need a copy
        blocks = blocks.clone(memory_format=torch.contiguous_format)
    if is_traced():
        return blocks.flatten(-5, -4).flatten(-3, -2)
    return blocks.reshape(*x.shape[:-2], num_rows * num_cols, rows * cols, x.size(-1))


def unblockify(
    x: Tensor, hw_shape: Shape, side: Side, centered: bool = False
) -> Tensor:
    """Undo :func:`blockify`: (..., n, s * t, d) to (..., N, d)."""
    return blocks_to_map(x, hw_shape, side, centered).flatten(-3, -2)


def blocks_to_map(
    x: Tensor, hw_shape: Shape, side: Side, centered: bool = False
) -> Tensor:
    """Undo :func:`blockify`, but return a map: (..., n, s * t, d) to (..., H, W, d)."""
    (num_rows, num_cols), (rows, cols) = _grid(hw_shape, side)
    padded_shape = _whole_blocks(hw_shape, side)
    blocks = _split_sides(x, (num_rows, num_cols, rows, cols))
    maps = blocks.reshape(*x.shape[:-3], *padded_shape, x.size(-1))
    return _crop(maps, padded_shape, hw_shape, centered)


def _split_sides(x: Tensor, sides: Sequence[Any]) -> Tensor:
    """Split two axes before the channels into four, of which the middle ones are then
    exchanged."""
    if not is_traced():
        blocks = x.view(*x.shape[:-3], *sides, x.size(-1))
    else:  # each axis on its own: a compiler need not divide numbers of tokens
        blocks = unflatten(unflatten(x, -2, sides[2:]), -4, sides[:2])
    return blocks.transpose(-4, -3)


def block_shape_on(hw_shape: Shape, side: Side) -> Shape:
    """Return sides (s, t) of a block on a map (H, W); see :func:`pad_map`."""
    rows, cols = (side, side) if isinstance(side, int) else side
    return hw_shape[0] if rows is None else rows, hw_shape[1] if cols is None else cols


def _grid(hw_shape: Shape, side: Side) -> tuple[Shape, Shape]:
    """Return numbers of blocks along both sides of a map, and the sides of a block."""
    rows, cols = (side, side) if isinstance(side, int) else side
    # a symbol that is divided by itself is no 1 to a compiler
    num_rows = 1 if rows is None else ceil_div(hw_shape[0], rows)
    num_cols = 1 if cols is None else ceil_div(hw_shape[1], cols)
    return (num_rows, num_cols), block_shape_on(hw_shape, side)


def _whole_blocks(hw_shape: Shape, side: Side) -> Shape:
    (num_rows, num_cols), (rows, cols) = _grid(hw_shape, side)
    return num_rows * rows, num_cols * cols


def _margins(
    padded_shape: Shape, hw_shape: Shape, centered: bool
) -> tuple[int, int, int, int]:
    """Return columns left and right of the map in the padded one, rows above and
    below."""
    below, right = padded_shape[0] - hw_shape[0], padded_shape[1] - hw_shape[1]
    if not centered:
        return 0, right, 0, below
    left, top = right // 2, below // 2
    return left, right - left, top, below - top


def _pad(maps: Tensor, padded_shape: Shape, hw_shape: Shape, centered: bool) -> Tensor:
    """Pad maps (..., H, W, d) to (..., H', W', d) of the padded size."""
    if are_equal(padded_shape, hw_shape):
        return maps
    return pad(maps, (0, 0, *_margins(padded_shape, hw_shape, centered)))


def _crop(maps: Tensor, padded_shape: Shape, hw_shape: Shape, centered: bool) -> Tensor:
    """Undo :func:`_pad`."""
    if are_equal(padded_shape, hw_shape):
        return maps
    left, right, top, below = _margins(padded_shape, hw_shape, centered)
    if _is_compiled():  # it would ask of a slice whether it is contiguous
        return pad(maps, (0, 0, -left, -right, -top, -below))
    height, width = hw_shape
    return maps[..., top : top + height, left : left + width, :]


def _is_compiled() -> bool:
    """Return True for a compiler, which makes another graph for each answer about
    sizes."""
    return is_traced() and not is_exported()
