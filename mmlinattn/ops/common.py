"""Parts that the operators share: precision, gradients, values between pixels."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def wide(tensor: Tensor) -> Tensor:
    """Return float16 and bfloat16 as float32, anything else as it is."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def add_gradients(
    grads: Sequence[Tensor], function: Callable, inputs: Sequence[Tensor], grad: Tensor
) -> None:
    """Add to ``grads`` the gradients of ``function(*inputs)``, times ``grad``."""
    inputs = [wide(tensor).detach().requires_grad_() for tensor in inputs]
    with torch.enable_grad():
        changes = torch.autograd.grad(function(*inputs), inputs, wide(grad))
    for total, change in zip(grads, changes):
        total += change


class Corners:
    """The four pixels around points, and their bilinear weights.

    A point up to one pixel outside the map has the value of its border, others are 0.
    ``y`` and ``x`` are rows and columns of points, in shapes that broadcast to S;
    ``maps`` is (..., H, W).
    """

    def __init__(self, y: Tensor, x: Tensor, maps: Tensor) -> None:
        (height, width), y, x = maps.shape[-2:], y.nan_to_num(-9), x.nan_to_num(-9)
        self.inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
        row, column = y.clamp(0, height - 1), x.clamp(0, width - 1)
        self.top, self.left = row.long(), column.long()
        self.bottom = (self.top + 1).clamp(max=height - 1)
        self.right = (self.left + 1).clamp(max=width - 1)
        # places in the flattened map: top left, top right, bottom left, bottom right
        across = (self.left, self.right)
        self.places = [y * width + x for y in (self.top, self.bottom) for x in across]
        down, right = row - self.top, column - self.left
        pairs = [(y, x) for y in (1 - down, down) for x in (1 - right, right)]
        self.weights = [y * x * self.inside for y, x in pairs]


def sample(table: Tensor, start: Tensor, corners: Corners) -> Tensor:
    """Return the values of points, S + (C,), from a table of pixels (N·H·W, C), in
    which ``start`` says where a point's map begins."""
    value = torch.zeros((), device=table.device)
    for place, weight in zip(corners.places, corners.weights):
        value = value + table[start + place] * weight[..., None]
    return value


def add_samples(grad: Tensor, start: Tensor, corners: Corners, more: Tensor) -> None:
    """Add to ``grad`` (N·H·W, C) the gradient of :func:`sample`; ``more``: S + (C,)."""
    for place, weight in zip(corners.places, corners.weights):
        rows = (more * weight[..., None]).flatten(0, -2)
        grad.index_add_(0, (start + place).flatten(), rows)
