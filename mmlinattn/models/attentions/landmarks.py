"""Landmark samplers of SOFT: a few tokens represent the whole map.

Legend: B batch, h heads, N = H * W tokens, m landmarks, d head dim. A ratio r
gives m = floor(H / r) * floor(W / r) landmarks. A side shorter than r counts
as one cell. A fixed number of landmarks, s * s at most, does not grow with the map.
"""

import math
from typing import Any, Optional, Union

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.functional import pad

from mmlinattn.functional import (
    adaptive_avg_pool2d,
    crop_map,
    square_side,
    to_map,
    to_tokens,
    unflatten,
)
from mmlinattn.functional.precision import at_least_float32, autocast_disabled
from mmlinattn.functional.tracing import apply, is_exported, larger, smaller

from ..layers.types import HW
from .base import check_count

Sides = Union[int, HW]


def pool_map(x: Tensor, hw_shape: HW, side: Sides) -> Tensor:
    """Average x (B, h, N, d) over a grid of cells, for maps (H, W) of any size;
    ``side`` has the cells along each side of the map. Returns (B, h, cells, d)."""
    maps = to_map(x.flatten(0, 1), hw_shape)  # (B * h, d, H, W)
    return unflatten(to_tokens(pool(maps, side)), 0, x.shape[:2])


def pool(maps: Tensor, side: Sides) -> Tensor:
    """Average maps (B, C, H, W) over the cells of a grid, in float32 or more."""
    with autocast_disabled(maps):
        (wide,) = at_least_float32(maps)
        return adaptive_avg_pool2d(wide, side).to(maps.dtype)


def fixed_grid(side: int, hw_shape: HW) -> HW:
    r"""Return rows and columns of a grid of at most s * s cells that are nearly
    squares, on a map (H, W) of any shape; at most H and W.

    The short side of the map gets :math:`s \sqrt{short / long}` of them, rounded, and
    the long one as many as are left. So a map and its transpose have cells of the same
    shape, and a square map has s * s.
    """
    height, width = hw_shape
    # one of the two is s, that of the longer side
    rows, columns = _short(side, height, width), _short(side, width, height)
    rows, columns = rows * (side**2 // columns), columns * (side**2 // rows)
    return smaller(rows // side, height), smaller(columns // side, width)


def _short(side: int, a: int, b: int) -> int:
    """``side * sqrt(a / b)``, rounded, from 1 to ``side``. Sizes of an exporter can be
    divided and compared, and have no root."""
    squares = [(2 * k - 1) ** 2 * b for k in range(2, side + 1)]
    if not is_exported():  # a number for a compiler, too, which compares sizes
        return 1 + len([square for square in squares if square <= 4 * side**2 * a])
    return 1 + sum(smaller(4 * side**2 * a // square, 1) for square in squares)


class LandmarkSampler(nn.Module):
    """Takes q (B, h, N, d) on a map (H, W) to landmarks (B, h, m, d).

    Args:
        head_dims (int): Channels d of a head.
        ratio (int): Sampling ratio r.
        fixed (int, optional): Landmarks of a square map, instead of the number that r
            gives; those of other maps are :func:`fixed_grid`.

    Raises:
        ValueError: If ``ratio`` is not a positive integer, or ``fixed`` not a square
            number.
    """

    def __init__(self, head_dims: int, ratio: int, fixed: Optional[int] = None) -> None:
        super().__init__()
        check_count(ratio, 'sampling_ratio')
        self.ratio = ratio
        self.fixed_side = None
        if fixed is not None:
            self.fixed_side = square_side(fixed, 'num_landmarks')

    def grid(self, hw_shape: HW) -> HW:
        """Return rows and columns of landmarks on a map of size (H, W)."""
        if self.fixed_side:
            return fixed_grid(self.fixed_side, hw_shape)
        return self.cells(hw_shape)

    def cells(self, hw_shape: HW) -> HW:
        """Return rows and columns of cells of the ratio."""
        return tuple(larger(side // self.ratio, 1) for side in hw_shape)

    def num_landmarks(self, hw_shape: HW) -> int:
        """m on a map of size (H, W)."""
        return math.prod(self.grid(hw_shape))


class _ContiguousGradient(Function):
    """The identity, with a contiguous gradient. On a CPU, PyTorch 2.1's GELU takes the
    memory of a transposed one for that of another layout, and returns any values."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        pass

    @staticmethod
    def tangent(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad.contiguous()


class ConvSampler(LandmarkSampler):
    """r x r convolution of stride r shared by all heads, LayerNorm, GELU.

    With a fixed number of landmarks, cells of a grid are averages of the convolution's
    outputs.
    """

    def __init__(self, head_dims: int, ratio: int, fixed: Optional[int] = None) -> None:
        super().__init__(head_dims, ratio, fixed)
        self.conv = nn.Conv2d(head_dims, head_dims, ratio, stride=ratio, bias=False)
        self.norm = nn.LayerNorm(head_dims)
        self.act = nn.GELU()

    def grid(self, hw_shape: HW) -> HW:
        cells = self.cells(hw_shape)
        return fixed_grid(self.fixed_side, cells) if self.fixed_side else cells

    def forward(self, q: Tensor, hw_shape: HW) -> Tensor:
        maps = to_map(q.flatten(0, 1), hw_shape)  # (B * h, d, H, W)
        missing = [larger(self.ratio - side, 0) for side in hw_shape]
        if is_exported() or any(missing):
            maps = pad(maps, (0, missing[1], 0, missing[0]))
        maps = self.conv(maps)
        if self.fixed_side:
            maps = pool(maps, self.grid(hw_shape))
        landmarks = to_tokens(maps)
        landmarks = apply(_ContiguousGradient, self.act(self.norm(landmarks)))
        return unflatten(landmarks, 0, q.shape[:2])


class PoolingSampler(LandmarkSampler):
    """The average of each r x r cell, or of each cell of a grid."""

    def forward(self, q: Tensor, hw_shape: HW) -> Tensor:
        grid = self.grid(hw_shape)
        if not self.fixed_side:  # drops incomplete cells at the right and bottom
            rows, columns = [
                smaller(cells * self.ratio, side) for cells, side in zip(grid, hw_shape)
            ]
            q, hw_shape = crop_map(q, hw_shape, (rows, columns)), (rows, columns)
        return pool_map(q, hw_shape, grid)


class RandomSampler(LandmarkSampler):
    """m tokens drawn without replacement, the same ones for all images.

    Each training step draws new ones. In eval mode there is one fixed draw per map
    size, so that an image's result is reproducible.
    """

    def forward(self, q: Tensor, hw_shape: HW) -> Tensor:
        num_tokens, num = q.size(2), self.num_landmarks(hw_shape)
        # on the device: a copy would stall the step
        if self.training:
            index = torch.randperm(num_tokens, device=q.device)
        else:
            index = fixed_draw(torch.arange(num_tokens, device=q.device))
        return q[:, :, index[:num]]


def fixed_draw(index: Tensor) -> Tensor:
    r"""Return a fixed permutation of 0...N - 1 that looks random, (N,) to (N,), without
    a generator: :math:`i \mapsto (10^9 + i)^5` modulo the prime :math:`2^{31} - 1` is
    one to one."""
    start, prime = index + 10**9, 2**31 - 1
    square = start * start % prime
    return (square * square % prime * start % prime).argsort()


class BiasedSampler(LandmarkSampler):
    """The first m tokens in raster order."""

    def forward(self, q: Tensor, hw_shape: HW) -> Tensor:
        return q[:, :, : self.num_landmarks(hw_shape)]


SAMPLERS = {
    'conv': ConvSampler,
    'pool': PoolingSampler,
    'random': RandomSampler,
    'biased': BiasedSampler,
}
