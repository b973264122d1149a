"""Attention inside shifted windows."""

from typing import Any, Optional

import torch
from torch import Tensor, nn

from mmlinattn.functional import blockify, crop_map, pad_map, unblockify, unflatten
from mmlinattn.functional.tracing import is_exported, smaller
from mmlinattn.parts import register

from ..layers.positions import learned_table, resize_map
from ..layers.types import HW
from .base import ProjectedAttention


def _shift_mask(
    hw_shape: HW, window: HW, shift_size: int, device: torch.device
) -> Tensor:
    """Additive mask between tokens that only a cyclic shift made neighbors: 0 or -100,
    (n windows, s * s, s * s), for a padded map."""
    rows, columns = [
        (index >= length - side).long() + (index >= length - shift_size)
        for length, side in zip(hw_shape, window)
        for index in [torch.arange(length, device=device)]
    ]
    labels = 3 * rows[:, None] + columns
    labels = blockify(labels.flatten()[:, None], hw_shape, window)
    return (labels != labels.transpose(-2, -1)) * -100.0


@register
class WindowAttention(ProjectedAttention):
    """Softmax attention in windows with a relative position bias, of Swin
    (*Swin Transformer: Hierarchical Vision Transformer using Shifted
    Windows*, arXiv 2103.14030).

    The map is zero-padded to whole windows before the projections. Padded tokens
    are keys like all others, as in the official code. It is bound to the map.

    Args:
        window_size (int): Side s of a window.
        shift_size (int): Cyclic shift, 0 for none.
        pad_small_map (bool): What happens to a map with a side that is no longer than a
            window. True: it is padded and shifted like any other, as in the detectors
            and segmentors of mmdet, mmseg and the official code. False: it is not
            shifted, and its windows shrink to the shorter side, as in the official
            classifier. Weights are the same.
        attn_drop (float): Dropout rate on attention weights.
        Others: See :class:`ProjectedAttention`; there is
            no LePE. AttnScale's mean is taken over a window.

    Raises:
        ValueError: If ``shift_size`` is not in 0...window_size - 1.
    """

    bound_to_map = True

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        window_size: int = 7,
        shift_size: int = 0,
        pad_small_map: bool = True,
        attn_drop: float = 0.0,
        *,
        qkv_bias: bool = True,
        attn_scale: bool = False,
        shared_qk: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(
            embed_dims,
            num_heads,
            lepe=False,
            qkv_bias=qkv_bias,
            attn_scale=attn_scale,
            shared_qk=shared_qk,
            init_cfg=init_cfg,
        )
        if not 0 <= shift_size < window_size:
            raise ValueError(
                f'shift_size must be in 0...{window_size - 1} for '
                f'window_size={window_size}, got {shift_size}'
            )
        self.window_size = window_size
        self.shift_size = shift_size
        self.pad_small_map = pad_small_map
        self.attn_drop = attn_drop
        side, span = torch.arange(window_size), 2 * window_size - 1
        self.relative_position_bias_table = learned_table(span**2, num_heads)
        positions = torch.cartesian_prod(side, side)  # (s * s, 2)
        rows, columns = (positions[:, None] - positions + window_size - 1).unbind(-1)
        index = rows * span + columns
        self.register_buffer('relative_position_index', index, persistent=False)
        self._register_load_state_dict_pre_hook(self._fit_stored_table)

    def _fit_stored_table(
        self, state_dict: dict[str, Tensor], prefix: str, *args: Any
    ) -> None:
        """Resize a checkpoint's table of another window to ours, as Swin does."""
        key = f'{prefix}relative_position_bias_table'
        stored, own = state_dict.get(key), self.relative_position_bias_table
        if stored is None or stored.shape == own.shape:
            return
        side, heads = round(len(stored) ** 0.5), stored.size(1)
        if side**2 == len(stored) and heads == own.size(1):
            maps = stored.T.view(1, heads, side, side)
            span = 2 * self.window_size - 1
            maps = resize_map(maps, (span, span), 'bicubic')
            state_dict[key] = maps.view(heads, -1).T

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        self.check_map(x, hw_shape)
        x, padded_shape = pad_map(x, hw_shape, self.window_on(hw_shape)[0])
        q, k, v = self.project(x)
        out = self.attend(q, k, v, padded_shape)
        return self.proj(crop_map(out, padded_shape, hw_shape))

    def window_on(self, hw_shape: HW) -> tuple[HW, int]:
        """Return sides of a window on a map, and their shift."""
        if self.pad_small_map:
            return (self.window_size, self.window_size), self.shift_size
        shorter = smaller(*hw_shape)
        side = smaller(shorter, self.window_size)
        # no branch in an export: 0 for several windows, else 1 or more
        is_one = smaller(self.window_size // shorter, 1)
        return (side, side), self.shift_size * (1 - is_one)

    def bias_of(self, window: HW) -> Tensor:
        """Return biases in a window that may be shrunk, (h, 1, s * s, s * s)."""
        index = self.relative_position_index
        if not self.pad_small_map:
            rows, columns = window
            index = unflatten(index, 1, (self.window_size, self.window_size))
            index = index[:, :rows, :columns].flatten(1)
            index = unflatten(index, 0, (self.window_size, self.window_size))
            index = index[:rows, :columns].flatten(0, 1)
        return self.relative_position_bias_table[index].permute(2, 0, 1).unsqueeze(1)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        """See :meth:`BaseAttention.attend`, on a map of whole windows."""
        window, shift = self.window_on(hw_shape)
        q, k, v = [
            blockify(self.split_heads(self.roll(x, hw_shape, -shift)), hw_shape, window)
            for x in (q, k, v)
        ]  # (B, h, n, s * s, d)
        bias = self.bias_of(window)
        # fused kernels take four axes; all images share the mask of a window
        if self.shift_size and (is_exported() or shift):
            mask = _shift_mask(hw_shape, window, shift, q.device)
            bias, joined = (bias + mask).flatten(0, 1), (1, 2)
        else:
            bias, joined = bias.repeat(q.size(0), 1, 1, 1), (0, 1)
        out = nn.functional.scaled_dot_product_attention(
            q.flatten(*joined),
            k.flatten(*joined),
            v.flatten(*joined),
            attn_mask=bias.to(q.dtype),
            dropout_p=self.dropout_p,
        )
        out = self.scale(out.view_as(q), v)
        out = unblockify(out, hw_shape, window)
        return self.roll(self.merge_heads(out), hw_shape, shift)

    @staticmethod
    def roll(x: Tensor, hw_shape: HW, shift: int) -> Tensor:
        """Shift a token map (B, N, C) cyclically along both sides."""
        if is_exported():
            rows, columns = (
                (torch.arange(length, device=x.device) - shift) % length
                for length in hw_shape
            )
            maps = unflatten(x, 1, hw_shape)
            return maps.index_select(1, rows).index_select(2, columns).flatten(1, 2)
        if not shift:
            return x
        return unflatten(x, 1, hw_shape).roll((shift, shift), (1, 2)).flatten(1, 2)
