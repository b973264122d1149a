"""Average pooling that can be exported for maps of any size.

Legend: ... batch and channels, (H, W) map, (h, w) cells.
"""

from typing import Any, Union

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d as torch_adaptive_avg_pool2d
from torch.nn.functional import avg_pool2d

from .tracing import is_exported, larger, smaller


def adaptive_avg_pool2d(x: Tensor, size: Union[int, tuple[int, int]]) -> Tensor:
    """Averages over a grid of cells, as PyTorch's function of this name.

    ONNX has no such operator for maps of any size. There it is a product with two
    matrices.

    Args:
        x (Tensor): (..., H, W), four axes in all.
        size (int | tuple[int]): (h, w), or one number for both. A cell has at least
            one position; neighbors share some where sides do not divide.

    Returns:
        Tensor: (..., h, w).
    """
    if not is_exported():
        return torch_adaptive_avg_pool2d(x, size)
    cells = (size, size) if isinstance(size, int) else size
    rows, columns = (
        _averages(x, length, number, length, number)
        for length, number in zip(x.shape[-2:], cells)
    )
    return rows @ x @ columns.transpose(-2, -1)


def cell_avg_pool2d(x: Tensor, side: int) -> Tensor:
    """Averages over square cells; what is left at the right and bottom is dropped.

    Args:
        x (Tensor): (..., H, W), four axes in all.
        side (int): Side s of a cell; a map's side shorter than s is one cell.

    Returns:
        Tensor: (..., h, w), h = max(floor(H / s), 1), w likewise.
    """
    if not is_exported():
        return avg_pool2d(x, [min(side, length) for length in x.shape[-2:]])
    rows, columns = (
        _averages(x, length, larger(length // side, 1), smaller(length, side), 1)
        for length in x.shape[-2:]
    )
    return rows @ x @ columns.transpose(-2, -1)


def _averages(x: Tensor, length: Any, number: Any, span: Any, share: Any) -> Tensor:
    """The matrix (number, length) whose row i averages over the positions from
    floor(i * span / share) to ceil((i + 1) * span / share), in the dtype of x."""
    cells = torch.arange(number, device=x.device).unsqueeze(-1)
    positions = torch.arange(length, device=x.device)
    starts = cells * span // share
    stops = ((cells + 1) * span + share - 1) // share
    inside = ((positions >= starts) & (positions < stops)).to(x.dtype)
    return inside / inside.sum(-1, keepdim=True)
