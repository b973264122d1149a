"""Maps of another size, as products with a matrix for each side where PyTorch's own
function can't be exported, or has no deterministic gradient on a GPU.

Legend: ... batch and channels, (H, W) map, (h, w) cells, (H', W') another map.
"""

from typing import Any, Union

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d as torch_adaptive_avg_pool2d
from torch.nn.functional import interpolate

from .precision import autocast_disabled, full_precision
from .tracing import is_exported


def adaptive_avg_pool2d(x: Tensor, size: Union[int, tuple[int, int]]) -> Tensor:
    """Average over a grid of cells, like PyTorch's function of this name.

    ONNX has no such operator for maps of any size, and no GPU a deterministic gradient.
    There it is a product with two matrices.

    Args:
        x (Tensor): (..., H, W), four axes in all.
        size (int | tuple[int]): (h, w), or one number for both. A cell has at least
            one position; neighbors share some where sides do not divide.

    Returns:
        Tensor: (..., h, w).
    """
    if not is_exported() and not torch.are_deterministic_algorithms_enabled():
        # a GPU takes up to 20 times as long for maps with channels last
        return torch_adaptive_avg_pool2d(x.contiguous() if x.is_cuda else x, size)
    cells = (size, size) if isinstance(size, int) else size
    rows, columns = map(_averages, (x, x), x.shape[-2:], cells)
    return _along_both_sides(x, rows, columns)


def resize(x: Tensor, size: tuple[int, int], mode: str) -> Tensor:
    """Interpolate, like :func:`torch.nn.functional.interpolate` without aligned
    corners, whose bicubic gradient on a GPU is not deterministic before PyTorch 2.15.

    Args:
        x (Tensor): (B, C, H, W), float32 or float64.
        size (tuple[int]): (H', W').
        mode (str): 'bilinear', 'bicubic' or another one of PyTorch.

    Returns:
        Tensor: (B, C, H', W').
    """
    is_deterministic = torch.are_deterministic_algorithms_enabled()
    if mode != 'bicubic' or is_exported() or not is_deterministic:
        return interpolate(x, size, mode=mode, align_corners=False)
    rows, columns = map(_cubic_weights, (x, x), x.shape[-2:], size)
    return _along_both_sides(x, rows, columns)


def _along_both_sides(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """(..., H, W) by matrices (H', H) and (W', W): (..., H', W')."""
    with autocast_disabled(x), full_precision(x):
        return rows @ x @ columns.transpose(-2, -1)


def _cubic_weights(x: Tensor, length: int, number: int) -> Tensor:
    """Return the matrix (number, length) that resizes one side: what a side of ones at
    one position becomes, in x's dtype."""
    sides = torch.eye(length, dtype=x.dtype, device=x.device)[None, None]
    size = (number, length)
    return interpolate(sides, size, mode='bicubic', align_corners=False)[0, 0]


def _averages(x: Tensor, length: Any, number: Any) -> Tensor:
    """Return the matrix (number, length) whose row i averages over the positions from
    floor(i * length / number) to ceil((i + 1) * length / number), in x's dtype."""
    cells = torch.arange(number, device=x.device).unsqueeze(-1)
    positions = torch.arange(length, device=x.device)
    starts = cells * length // number
    stops = ((cells + 1) * length + number - 1) // number
    inside = ((positions >= starts) & (positions < stops)).to(x.dtype)
    return inside / inside.sum(-1, keepdim=True)
