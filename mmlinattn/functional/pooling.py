"""Average pooling that can be exported for maps of any size.

Legend: ... batch and channels, (H, W) map, (h, w) cells.
"""

from typing import Any, Union

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d as torch_adaptive_avg_pool2d

from .tracing import is_exported


def adaptive_avg_pool2d(x: Tensor, size: Union[int, tuple[int, int]]) -> Tensor:
    """Averages over a grid of cells, like PyTorch's function of this name.

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
        # a GPU takes up to 20 times as long for maps with channels last
        return torch_adaptive_avg_pool2d(x.contiguous() if x.is_cuda else x, size)
    cells = (size, size) if isinstance(size, int) else size
    rows, columns = map(_averages, (x, x), x.shape[-2:], cells)
    return rows @ x @ columns.transpose(-2, -1)


def _averages(x: Tensor, length: Any, number: Any) -> Tensor:
    """The matrix (number, length) whose row i averages over the positions from
    floor(i * length / number) to ceil((i + 1) * length / number), in x's dtype."""
    cells = torch.arange(number, device=x.device).unsqueeze(-1)
    positions = torch.arange(length, device=x.device)
    starts = cells * length // number
    stops = ((cells + 1) * length + number - 1) // number
    inside = ((positions >= starts) & (positions < stops)).to(x.dtype)
    return inside / inside.sum(-1, keepdim=True)
