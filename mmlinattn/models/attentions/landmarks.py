"""Landmark samplers of SOFT: a few tokens represent the whole map.

Legend: B batch, h heads, N = H * W tokens, m landmarks, d head dim. A ratio r
gives m = floor(H / r) * floor(W / r) landmarks. A side shorter than r counts
as one cell.
"""

import torch
from torch import nn
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d, pad

from mmlinattn.functional.precision import at_least_float32, autocast_disabled


def pool_map(x, hw_shape, side):
    """Averages over a grid of cells, for maps of any size.

    Args:
        x (Tensor): (B, h, N, d).
        hw_shape (tuple[int]): (H, W).
        side (int | tuple[int]): Cells along each side of the map.

    Returns:
        Tensor: (B, h, cells, d).
    """
    maps = x.flatten(0, 1).mT.unflatten(-1, hw_shape)  # (B * h, d, H, W)
    with autocast_disabled(x):
        (maps,) = at_least_float32(maps)
        pooled = adaptive_avg_pool2d(maps, side).to(x.dtype)
    return pooled.flatten(2).mT.unflatten(0, x.shape[:2])


class LandmarkSampler(nn.Module):
    """Takes q (B, h, N, d) on a map (H, W) to landmarks (B, h, m, d).

    Args:
        head_dims (int): Channels d of a head.
        ratio (int): Sampling ratio r.

    Raises:
        ValueError: If ``ratio`` is not a positive integer.
    """

    def __init__(self, head_dims, ratio):
        super().__init__()
        if not isinstance(ratio, int) or ratio < 1:
            raise ValueError(
                f'sampling_ratio must be a positive integer, got {ratio!r}'
            )
        self.head_dims = head_dims
        self.ratio = ratio

    def num_landmarks(self, hw_shape):
        """m on a map of size (H, W)."""
        height, width = hw_shape
        return max(height // self.ratio, 1) * max(width // self.ratio, 1)

    def extra_repr(self):
        return f'head_dims={self.head_dims}, ratio={self.ratio}'


class ConvSampler(LandmarkSampler):
    """r x r convolution of stride r shared by all heads, LayerNorm, GELU."""

    def __init__(self, head_dims, ratio):
        super().__init__(head_dims, ratio)
        self.conv = nn.Conv2d(head_dims, head_dims, ratio, stride=ratio, bias=False)
        self.norm = nn.LayerNorm(head_dims)
        self.act = nn.GELU()

    def forward(self, q, hw_shape):
        maps = q.flatten(0, 1).mT.unflatten(-1, hw_shape)  # (B * h, d, H, W)
        missing = [max(self.ratio - side, 0) for side in hw_shape]
        maps = pad(maps, (0, missing[1], 0, missing[0]))
        landmarks = self.conv(maps).flatten(2).mT
        return self.act(self.norm(landmarks)).unflatten(0, q.shape[:2])


class PoolingSampler(LandmarkSampler):
    """The average of each r x r cell."""

    def forward(self, q, hw_shape):
        maps = q.flatten(0, 1).mT.unflatten(-1, hw_shape)  # (B * h, d, H, W)
        cell = [min(self.ratio, side) for side in hw_shape]
        landmarks = avg_pool2d(maps, cell)
        return landmarks.flatten(2).mT.unflatten(0, q.shape[:2])


class RandomSampler(LandmarkSampler):
    """m tokens drawn without replacement, the same ones for all images.

    Each training step draws anew. In eval mode there is one fixed draw per map
    size, so that an image's result is reproducible.
    """

    def forward(self, q, hw_shape):
        num = self.num_landmarks(hw_shape)
        if self.training:  # drawn where it is used: a copy would stall the step
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
