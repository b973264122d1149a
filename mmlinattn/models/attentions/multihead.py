"""A drop-in for PyTorch's attention.

Legend: B batch, (H, W) map, N tokens, C channels.
"""

from typing import Any, Optional

import torch
from torch import Tensor, nn

from mmlinattn.parts import build_model

# the largest bias that leaves a token out: float16 has no -1e9
LEFT_OUT = -1e4


class MultiheadSelfAttention(nn.Module):
    """Any of our attentions with the interface of :class:`torch.nn.MultiheadAttention`,
    for self-attention.

    There are no weights to return: the second output is None.

    Args:
        embed_dim (int): Channels C.
        num_heads (int): Heads.
        attention (dict): Config of the attention.
        batch_first (bool): Tokens are (B, N, C), not (N, B, C).
        hw_shape (tuple[int], optional): (H, W) of the map that the tokens are.
            Default: they are a sequence, a map of one row.
    """

    # what PyTorch's TransformerEncoderLayer asks before it takes a way of its own
    in_proj_bias = None
    _qkv_same_embed_dim = False

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        attention: dict[str, Any] = dict(type='EfficientAttention'),
        batch_first: bool = False,
        hw_shape: Optional[tuple[int, int]] = None,
    ) -> None:
        super().__init__()
        self.attn = build_model(attention, embed_dims=embed_dim, num_heads=num_heads)
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.batch_first, self.hw_shape = batch_first, hw_shape

    def forward(
        self,
        query: Tensor,
        key: Optional[Tensor] = None,
        value: Optional[Tensor] = None,
        key_padding_mask: Optional[Tensor] = None,
        need_weights: bool = False,
        attn_mask: Optional[Tensor] = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, None]:
        """Self-attention of the query.

        Args:
            query (Tensor): (N, B, C), or (B, N, C) with ``batch_first``; there is
                always a batch.
            key, value (Tensor, optional): The query.
            key_padding_mask (Tensor, optional): (B, N), bool or float; tokens that are
                True, or -1e4 or less, are left out: the result is that of each sequence
                alone, and 0 for them. Others are False or 0. Images with the same
                number of tokens are computed together.
            need_weights, average_attn_weights: Without effect.
            attn_mask, is_causal: Refused.

        Raises:
            ValueError: If there is no batch, if keys or values are not the query, if
                there is a mask of pairs of tokens, one of the tokens of a map, or one
                of another dtype, shape, or with other values.
        """
        if query.dim() != 3:
            raise ValueError(
                f'query must have three axes, got {tuple(query.shape)}; unsqueeze adds '
                'that of the batch'
            )
        if any(tensor is not None and tensor is not query for tensor in (key, value)):
            raise ValueError(
                'key and value must be the query: these attentions have no '
                'cross-attention'
            )
        if attn_mask is not None or is_causal:
            raise ValueError(
                'attn_mask must be None and is_causal False: an attention without '
                'N x N weights cannot mask pairs of tokens'
            )
        x = query if self.batch_first else query.transpose(0, 1)
        if key_padding_mask is None:
            out = self.attn(x, self.hw_shape or (1, x.size(1)))
        else:
            out = self.attend_to_sequences(x, key_padding_mask)
        return out if self.batch_first else out.transpose(0, 1), None

    @staticmethod
    def left_out(mask: Tensor, shape: torch.Size) -> Tensor:
        """Return True for the tokens that a mask of this shape leaves out.

        Raises:
            ValueError: If the mask has another dtype or shape, or biases.
        """
        if not (mask.dtype == torch.bool or mask.is_floating_point()):
            raise ValueError(
                f'key_padding_mask must be bool or float, got {mask.dtype}: give a '
                'bool mask that is True for padding'
            )
        if mask.shape != shape:
            raise ValueError(
                f'key_padding_mask must be (B, N) = {tuple(shape)}, got '
                f'{tuple(mask.shape)}'
            )
        if mask.dtype == torch.bool:
            return mask
        is_left_out = mask <= LEFT_OUT
        biases = mask[~is_left_out & (mask != 0)]
        if biases.numel():
            raise ValueError(
                f'key_padding_mask has {biases[0].item():g}: an attention without '
                'N x N weights takes no biases; give 0 for tokens and -inf for padding'
            )
        return is_left_out

    def attend_to_sequences(self, x: Tensor, mask: Tensor) -> Tensor:
        """Sequences (B, N, C), each without its padding, to (B, N, C)."""
        if self.hw_shape is not None:
            raise ValueError(
                f'key_padding_mask needs sequences, not the tokens of a map of '
                f'hw_shape={self.hw_shape}'
            )
        is_token = ~self.left_out(mask, x.shape[:2])
        lengths, out = is_token.sum(1), torch.zeros_like(x)
        for length in lengths.unique().tolist():
            if length:
                places = is_token & (lengths == length)[:, None]
                tokens = x[places].view(-1, length, x.size(2))
                tokens = self.attn(tokens, (1, length))
                out[places] = tokens.flatten(0, 1).to(out.dtype)
        return out
