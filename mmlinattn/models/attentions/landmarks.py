"""Landmark samplers of SOFT: a few tokens represent the whole map.

Legend: B batch, h heads, N = H * W tokens, m landmarks, d head dim. A ratio r
gives m = floor(H / r) * floor(W / r) landmarks. A side shorter than r counts
as one cell. A fixed number of landmarks, a square, does not grow with the map.
"""

import math

import torch
from torch import nn
from torch.nn.functional import pad

from mmlinattn import functional as F
from mmlinattn.functional.precision import at_least_float32, autocast_disabled
from mmlinattn.functional.tracing import is_exported, larger, smaller

from .base import check_count


def pool_map(x, hw_shape, side):
    """Averages over a grid of cells, for maps of any size.

    Args:
        x (Tensor): (B, h, N, d).
        hw_shape (tuple[int]): (H, W).
        side (int | tuple[int]): Cells along each side of the map.

    Returns:
        Tensor: (B, h, cells, d).
    """
    maps = F.to_map(x.flatten(0, 1), hw_shape)  # (B * h, d, H, W)
    with autocast_disabled(x):
        (maps,) = at_least_float32(maps)
        pooled = F.adaptive_avg_pool2d(maps, side).to(x.dtype)
    return F.unflatten(F.to_tokens(pooled), 0, x.shape[:2])


class LandmarkSampler(nn.Module):
    """Takes q (B, h, N, d) on a map (H, W) to landmarks (B, h, m, d).

    Args:
        head_dims (int): Channels d of a head.
        ratio (int): Sampling ratio r.
        fixed (int, optional): m, instead of the number that r gives; at most N.

    Raises:
        ValueError: If ``ratio`` is not a positive integer, or ``fixed`` not a square
            number.
    """

    def __init__(self, head_dims, ratio, fixed=None):
        super().__init__()
        check_count(ratio, 'sampling_ratio')
        self.ratio = ratio
        self.fixed_side = None
        if fixed is not None:
            self.fixed_side = F.square_side(fixed, 'num_landmarks')

    def grid(self, hw_shape):
        """Rows and columns of landmarks on a map of size (H, W)."""
        if self.fixed_side:
            return tuple(smaller(self.fixed_side, side) for side in hw_shape)
        return tuple(larger(side // self.ratio, 1) for side in hw_shape)

    def num_landmarks(self, hw_shape):
        """m on a map of size (H, W)."""
        return math.prod(self.grid(hw_shape))


class ConvSampler(LandmarkSampler):
    """r x r convolution of stride r shared by all heads, LayerNorm, GELU.

    Raises:
        ValueError: If a number of landmarks is given: it follows from the stride.
    """

    def __init__(self, head_dims, ratio, fixed=None):
        if fixed is not None:
            raise ValueError(
                f'num_landmarks={fixed} needs a sampler without strides: '
                "'pool', 'random' or 'biased', got 'conv'"
            )
        super().__init__(head_dims, ratio)
        self.conv = nn.Conv2d(head_dims, head_dims, ratio, stride=ratio, bias=False)
        self.norm = nn.LayerNorm(head_dims)
        self.act = nn.GELU()

    def forward(self, q, hw_shape):
        maps = F.to_map(q.flatten(0, 1), hw_shape)  # (B * h, d, H, W)
        missing = [larger(self.ratio - side, 0) for side in hw_shape]
        maps = pad(maps, (0, missing[1], 0, missing[0]))
        landmarks = F.to_tokens(self.conv(maps))
        return F.unflatten(self.act(self.norm(landmarks)), 0, q.shape[:2])


class PoolingSampler(LandmarkSampler):
    """The average of each r x r cell, or of each cell of a grid."""

    def forward(self, q, hw_shape):
        grid = self.grid(hw_shape)
        if not self.fixed_side:  # drops incomplete cells at the right and bottom
            whole = [smaller(n * self.ratio, side) for n, side in zip(grid, hw_shape)]
            q, hw_shape = F.crop_map(q, hw_shape, whole), whole
        return pool_map(q, hw_shape, grid)


class RandomSampler(LandmarkSampler):
    """m tokens drawn without replacement, the same ones for all images.

    Each training step draws new ones. In eval mode there is one fixed draw per map
    size, so that an image's result is reproducible.
    """

    def forward(self, q, hw_shape):
        if is_exported():
            raise ValueError(
                "sampler='random' draws landmarks for each map size, which no file can "
                "hold: export with the sampler 'conv', 'pool' or 'biased'"
            )
        num = self.num_landmarks(hw_shape)
        if self.training:  # drawn on the device: a copy would stall the step
            index = torch.randperm(q.size(2), device=q.device)
        else:
            generator = torch.Generator().manual_seed(0)
            index = torch.randperm(q.size(2), generator=generator).to(q.device)
        return q[:, :, index[:num]]


class BiasedSampler(LandmarkSampler):
    """The first m tokens in raster order."""

    def forward(self, q, hw_shape):
        return q[:, :, : self.num_landmarks(hw_shape)]


SAMPLERS = {
    'conv': ConvSampler,
    'pool': PoolingSampler,
    'random': RandomSampler,
    'biased': BiasedSampler,
}
