"""Layers of residual branches: stochastic depth and LayerScale."""

import torch
from torch import Tensor, nn


class DropPath(nn.Module):
    """Stochastic depth (arXiv 1603.09382): in training, drops a branch of some samples,
    and scales the others up.

    Args:
        drop_prob (float): Probability that a sample is dropped.
    """

    def __init__(self, drop_prob: float = 0.1) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x: Tensor) -> Tensor:
        if not self.drop_prob or not self.training:
            return x
        keep_prob = 1 - self.drop_prob
        shape = (x.shape[0], *[1] * (x.dim() - 1))
        # as mmcv and timm draw: the same seed drops the same samples
        drawn = keep_prob + torch.rand(shape, dtype=x.dtype, device=x.device)
        return x.div(keep_prob) * drawn.floor()


class LayerScale(nn.Module):
    """Learned factors of channels, (..., C) to (..., C) (arXiv 2103.17239).

    Args:
        embed_dims (int): Channels C.
        scale (float): Start of the factors.
    """

    def __init__(self, embed_dims: int, scale: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(embed_dims) * scale)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight
