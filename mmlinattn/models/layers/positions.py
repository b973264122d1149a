"""Layers from maps to tokens: positions, class tokens.

Legend: B batch, C channels, (H, W) map, N = H * W tokens.
"""

import torch
from torch import nn

from mmlinattn import functional as F
from mmlinattn.functional.tracing import is_exported


def embed_tokens(x, pos_embed=None, cls_token=None):
    """Turns a map into tokens with positions.

    Args:
        x (Tensor): Map, (B, C, H, W).
        pos_embed (PositionTable, optional): Positions, extra tokens first.
        cls_token (Tensor, optional): Class token that comes first, (1, 1, C).

    Returns:
        tuple[Tensor, tuple[int]]: Tokens, (B, N, C) or (B, 1 + N, C), and (H, W).
    """
    hw_shape = tuple(x.shape[2:])
    x = F.to_tokens(x)
    if cls_token is not None:
        x = torch.cat((cls_token.expand(x.size(0), -1, -1), x), dim=1)
    if pos_embed is not None:
        x = x + pos_embed(hw_shape)
    return x, hw_shape


def learned_tokens(num_tokens, embed_dims):
    """A parameter (1, num_tokens, embed_dims), initialized."""
    tokens = torch.zeros(1, num_tokens, embed_dims)
    return nn.Parameter(nn.init.trunc_normal_(tokens, std=0.02))


class PositionTable(nn.Module):
    """Learned positions of a map and of extra tokens, resized to any map.

    Args:
        embed_dims (int): Channels C.
        hw_shape (tuple[int]): Size of the stored map.
        num_extra (int): Extra tokens, first in the table.
        mode (str): Interpolation of :func:`torch.nn.functional.interpolate`.
    """

    def __init__(self, embed_dims, hw_shape, num_extra=0, mode='bilinear'):
        super().__init__()
        self.hw_shape = tuple(hw_shape)
        self.num_extra = num_extra
        self.mode = mode
        height, width = self.hw_shape
        self.table = learned_tokens(num_extra + height * width, embed_dims)
        self._register_load_state_dict_pre_hook(self._fit_stored_table)

    def resize(self, table, stored, wanted):
        """Resizes a table for a map of size ``stored`` to size ``wanted``."""
        if not is_exported() and tuple(stored) == tuple(wanted):
            return table
        extra, maps = table.split(
            [self.num_extra, table.size(1) - self.num_extra], dim=1
        )
        maps = nn.functional.interpolate(
            F.to_map(maps, stored), size=wanted, mode=self.mode, align_corners=False
        )
        return torch.cat((extra, F.to_tokens(maps)), dim=1)

    def forward(self, hw_shape):
        """Positions for a map (H, W): (1, num_extra + N, C)."""
        return self.resize(self.table, self.hw_shape, hw_shape)

    def _fit_stored_table(self, state_dict, prefix, *args):
        """Resizes a checkpoint's square table to the size of ours."""
        table = state_dict.get(f'{prefix}table')
        if table is None or table.shape == self.table.shape:
            return
        side = round((table.size(1) - self.num_extra) ** 0.5)
        if side**2 + self.num_extra == table.size(1):
            state_dict[f'{prefix}table'] = self.resize(
                table, (side, side), self.hw_shape
            )
