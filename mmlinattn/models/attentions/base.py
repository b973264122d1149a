"""Base classes of all attentions."""

from typing import Any, Optional

import torch
from torch import Tensor, nn

from mmlinattn.functional import attn_scale, unflatten
from mmlinattn.functional.precision import autocast_disabled
from mmlinattn.functional.tracing import is_exported, is_traced

from ..layers.depthwise import DepthwiseConv
from ..layers.initialization import BaseModule
from ..layers.types import HW


def check_count(value: Any, name: str) -> None:
    """Raise an error with the argument's name unless it is a positive integer."""
    if not isinstance(value, int) or value < 1:
        raise ValueError(f'{name} must be a positive integer, got {value!r}')


class BaseAttention(BaseModule):
    """Heads, AttnScale, and the contract of all attentions.

    ``forward(x, hw_shape)`` takes x (B, N, C) and the map's (H, W) with
    N = H * W + extra tokens, which come first, and returns (B, N, C). Between
    its projections, ``attend(q, k, v, hw_shape)`` is the attention itself.

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads h, a divisor of C.
        attn_scale (bool): Learns one AttnScale factor per head, which starts at 0.
            Its mean is taken over all keys that a query sees.
        init_cfg (dict, optional): Initial values, as in MMEngine.

    Raises:
        ValueError: If ``num_heads`` does not divide ``embed_dims``.
    """

    # True if forward() refuses tokens besides the map's
    bound_to_map = False
    # False if the output is no product of an attention matrix and the values
    linear_in_values = True
    # True if all channels of a head have one attention matrix
    one_matrix_per_head = True
    # dropout rate on attention weights, where there are weights
    attn_drop = 0.0

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        attn_scale: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(init_cfg)
        if num_heads < 1 or embed_dims % num_heads:
            raise ValueError(
                f'num_heads must divide embed_dims, got num_heads={num_heads} '
                f'and embed_dims={embed_dims}'
            )
        self.embed_dims = embed_dims
        self.num_heads = num_heads
        self.head_dims = embed_dims // num_heads
        self.omega = nn.Parameter(torch.zeros(num_heads)) if attn_scale else None

    @property
    def dims_of_heads(self) -> tuple[int, ...]:
        """Channels of each head, in the order of the channels."""
        return (self.head_dims,) * self.num_heads

    @property
    def dropout_p(self) -> float:
        """Dropout rate on attention weights; 0 in eval mode."""
        return self.attn_drop if self.training else 0.0

    def key_shape(self, hw_shape: HW) -> HW:
        """Return size of the map of keys for a map of (H, W) queries."""
        return hw_shape[0], hw_shape[1]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        """Return the output of the attention for queries, keys and values: linear in
        the values unless ``linear_in_values`` is False.

        Args:
            q (Tensor): (B, N, C).
            k (Tensor): (B, M, C), M = N unless there are fewer keys than queries.
            v (Tensor): (B, M, C).
            hw_shape (tuple[int]): (H, W).

        Returns:
            Tensor: (B, N, C), AttnScale included. By default, it is that of
                :meth:`product`.
        """
        q, k, v = [self.split_heads(x) for x in (q, k, v)]
        return self.merge_heads(self.scale(self.product(q, k, v, hw_shape), v))

    def attends_as(self, kind: type['BaseAttention']) -> bool:
        """Return whether a faster computation can take the place of a class's
        :meth:`attend`: a subclass may have its own one,
        :func:`mmlinattn.analysis.watch` shows it, and compilers and files record the
        plain operations."""
        if is_traced():
            return False
        return type(self).attend is kind.attend and 'attend' not in vars(self)

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        """Return the attention of heads (B, h, N, d), without AttnScale."""
        raise NotImplementedError

    def split_heads(self, x: Tensor, num_heads: Optional[int] = None) -> Tensor:
        """(B, N, C) as (B, h, N, d)."""
        return unflatten(x, -1, (num_heads or self.num_heads, -1)).transpose(1, 2)

    @staticmethod
    def merge_heads(x: Tensor) -> Tensor:
        """(B, h, N, d) as (B, N, C)."""
        return x.transpose(1, 2).flatten(2)

    @staticmethod
    def add_heads(x: Tensor, heads: Tensor) -> Tensor:
        """Return the sum of tokens (B, N, C) and heads (B, h, N, d), (B, N, C), without
        the copy that :meth:`merge_heads` would make."""
        heads = heads.transpose(1, 2)
        if heads.is_contiguous():  # merging them makes none, and fewer views
            return x + heads.flatten(2)
        return (unflatten(x, -1, heads.shape[2:]) + heads).flatten(2)

    def scale(self, out: Tensor, v: Tensor) -> Tensor:
        """Apply AttnScale to the attention product, if it is switched on."""
        return out if self.omega is None else attn_scale(out, v, self.omega)

    def project_in_float32(self, out: Tensor) -> Tensor:
        """Apply ``proj`` to sums that half precision can't hold."""
        # a quantized layer has a method of this name, and wants float32
        weight = self.proj.weight
        dtype = weight.dtype if isinstance(weight, torch.Tensor) else torch.float32
        with autocast_disabled(out):
            return self.proj(out.to(dtype))

    def check_map(self, x: Tensor, hw_shape: HW) -> None:
        """Refuse, by a ValueError, x that does not have N = H * W > 0 tokens: empty
        maps, and tokens besides the map's."""
        if is_exported():
            return
        height, width = hw_shape
        if x.size(1) != height * width or not x.size(1):
            raise ValueError(
                f'{type(self).__name__} is bound to the map: it needs N = H * W > 0 '
                f'tokens, got N={x.size(1)} for hw_shape={(height, width)}'
            )


class ProjectedAttention(BaseAttention):
    """A projection to queries, keys and values, and one back.

    A subclass implements :meth:`product` or :meth:`attend` between them, and sets
    ``bound_to_map``.

    Args:
        embed_dims, num_heads, attn_scale, init_cfg: See :class:`BaseAttention`.
        qkv_bias (bool): Biases of the three projections.
        lepe (bool): Adds LePE, a 3 x 3 :class:`DepthwiseConv` of the values,
            to the map's tokens only.
        shared_qk (bool): One projection serves queries and keys, as in Table 8 of
            *Softmax-free Linear Transformers* (arXiv 2207.03341).

    Raises:
        ValueError: In ``forward`` of a subclass that is bound to the map, if the map
            is empty or there are tokens besides the map's.
    """

    # True if another projection of the tokens multiplies the input of the last one
    gated = False

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        qkv_bias: bool = True,
        lepe: bool = False,
        attn_scale: bool = False,
        init_cfg: Optional[dict] = None,
        shared_qk: bool = False,
    ) -> None:
        super().__init__(embed_dims, num_heads, attn_scale, init_cfg)
        self.shared_qk = shared_qk
        num_projections = (2 if shared_qk else 3) + self.gated
        self.qkv = nn.Linear(embed_dims, num_projections * embed_dims, bias=qkv_bias)
        self.with_lepe = lepe
        self.lepe: Any = DepthwiseConv(embed_dims) if lepe else None
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        if self.bound_to_map:
            self.check_map(x, hw_shape)
        if self.attends_as(BaseAttention) and self.projects_as(ProjectedAttention):
            projections = self.qkv(x)
            q, k, v, *gate = self.split_projections(projections, self.embed_dims, -1)
            heads = self.attend_heads(projections, hw_shape)
            if self.with_lepe:
                out = self.add_heads(self.encode_positions(v, hw_shape), heads)
            else:
                out = self.merge_heads(heads)
        else:
            q, k, v, *gate = self.project(x)
            out = self.attend(q, k, v, hw_shape)
            if self.with_lepe:
                out = out + self.encode_positions(v, hw_shape)
        return self.project_back(out * gate[0] if gate else out)

    def attend_heads(self, projections: Tensor, hw_shape: HW) -> Tensor:
        """Return heads (B, h, N, d) whose merger is :meth:`BaseAttention.attend` of the
        projections (B, N, 3 C), or 2 C or 4 C; their heads are split together."""
        num_heads = projections.size(-1) // self.head_dims
        heads = self.split_heads(projections, num_heads)
        q, k, v, *_ = self.split_projections(heads, self.num_heads, 1)
        return self.scale(self.product(q, k, v, hw_shape), v)

    def project_back(self, out: Tensor) -> Tensor:
        """Return the last projection, (B, N, C) to (B, N, C)."""
        return self.proj(out)

    def project(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return queries, keys, values, and a gate if there is one, (B, N, C) each."""
        return self.split_projections(self.qkv(x), self.embed_dims, -1)

    def projects_as(self, kind: type['ProjectedAttention']) -> bool:
        """Return whether :meth:`project` is that of a class."""
        return type(self).project is kind.project

    def split_projections(self, x: Tensor, size: int, dim: int) -> tuple[Tensor, ...]:
        """Split the output of ``qkv``, or its heads, into those of :meth:`project`."""
        parts = x.split(size, dim)
        # one projection may serve queries and keys
        return parts if len(parts) == 3 + self.gated else (parts[0], *parts)

    def encode_positions(self, v: Tensor, hw_shape: HW) -> Tensor:
        """LePE of the values, (B, N, C) to (B, N, C)."""
        return self.lepe(v, hw_shape)
