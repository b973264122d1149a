"""Layers from maps to tokens: positions, class tokens.

Legend: B batch, C channels, (H, W) map, N = H * W tokens.
"""

from typing import Any, Optional

import torch
from torch import Tensor, nn

from mmlinattn.functional import resize, to_map, to_tokens
from mmlinattn.functional.precision import at_least_float32
from mmlinattn.functional.tracing import is_exported

from .types import HW


def embed_tokens(
    x: Tensor,
    pos_embed: Optional['PositionTable'] = None,
    cls_token: Optional[Tensor] = None,
) -> tuple[Tensor, HW]:
    """Turn a map (B, C, H, W) into tokens, (B, N, C) or (B, 1 + N, C), and (H, W):
    after a class token (1, 1, C), and with positions of both."""
    hw_shape = (x.size(2), x.size(3))
    x = to_tokens(x)
    if cls_token is not None:
        x = torch.cat((cls_token.expand(x.size(0), -1, -1), x), dim=1)
    if pos_embed is not None:
        x = x + pos_embed(hw_shape)
    return x, hw_shape


def learned_table(*shape: int) -> nn.Parameter:
    """Return a parameter with truncated normal values, std 0.02."""
    table = torch.zeros(shape)
    # not its result: transformers replaces it by a function without one
    nn.init.trunc_normal_(table, std=0.02)
    return nn.Parameter(table)


def resize_map(maps: Tensor, hw_shape: HW, mode: str = 'bilinear') -> Tensor:
    """Resize maps (B, C, H', W') to (B, C, H, W); half precision in float32, because no
    CPU resizes it."""
    if not is_exported() and tuple(maps.shape[2:]) == tuple(hw_shape):
        return maps
    (wide,) = at_least_float32(maps)
    return resize(wide, hw_shape, mode).to(maps.dtype)


class PositionTable(nn.Module):
    """Learned positions of a map and of extra tokens, resized to any map.

    Args:
        embed_dims (int): Channels C.
        hw_shape (tuple[int]): Size of the stored map.
        num_extra (int): Extra tokens, first in the table.
        mode (str): Interpolation of :func:`torch.nn.functional.interpolate`.
    """

    def __init__(
        self, embed_dims: int, hw_shape: HW, num_extra: int = 0, mode: str = 'bilinear'
    ) -> None:
        super().__init__()
        height, width = hw_shape
        self.hw_shape = (height, width)
        self.num_extra = num_extra
        self.mode = mode
        self.table = learned_table(1, num_extra + height * width, embed_dims)
        self._register_load_state_dict_pre_hook(self._fit_stored_table)

    def resize(self, table: Tensor, stored: HW, wanted: HW) -> Tensor:
        """Resize a table for a map of size ``stored`` to size ``wanted``."""
        if not is_exported() and tuple(stored) == tuple(wanted):
            return table
        extra, maps = table.split(
            [self.num_extra, table.size(1) - self.num_extra], dim=1
        )
        maps = to_tokens(resize_map(to_map(maps, stored), wanted, self.mode))
        return torch.cat((extra, maps), dim=1) if self.num_extra else maps

    def forward(self, hw_shape: HW) -> Tensor:
        """Positions for a map (H, W): (1, num_extra + N, C)."""
        return self.resize(self.table, self.hw_shape, hw_shape)

    def _fit_stored_table(
        self, state_dict: dict[str, Tensor], prefix: str, *args: Any
    ) -> None:
        """Resize a checkpoint's square table to the size of ours."""
        table = state_dict.get(f'{prefix}table')
        if table is None or table.shape == self.table.shape:
            return
        side = round((table.size(1) - self.num_extra) ** 0.5)
        if side**2 + self.num_extra == table.size(1):
            state_dict[f'{prefix}table'] = self.resize(
                table, (side, side), self.hw_shape
            )
