"""The attention of VSSD as a module."""

import math
from typing import Optional

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, silu, softplus

from mmlinattn.functional import non_causal_ssd
from mmlinattn.functional.precision import at_least_float32, autocast_disabled
from mmlinattn.parts import register

from ..layers.depthwise import DepthwiseConv
from ..layers.types import HW
from .base import BaseAttention, check_count

# of Mamba 2: ranges of exp(A_log) and of the steps, at the start of a training
_DECAYS = (1.0, 16.0)
_STEPS = (1e-3, 1e-1)


class NormOfSums(nn.LayerNorm):
    """A LayerNorm in float32, of sums that half precision can't hold."""

    def forward(self, x: Tensor) -> Tensor:
        with autocast_disabled(x):
            x, weight, bias = at_least_float32(x, self.weight, self.bias)
            return layer_norm(x, self.normalized_shape, weight, bias, self.eps)


@register
class VSSDAttention(BaseAttention):
    r"""Non-causal state space duality of *VSSD: Vision Mamba with Non-Causal State
    Space Duality* (arXiv 2407.18559), as the official code has it.

    One projection of the tokens makes a gate of 2 C channels, as many values, one query
    and one key for all heads, and a step for each head. Values, queries and keys are
    convolved and activated. A token's weight in a head is :math:`softplus(\Delta +
    b_\Delta) \exp(A_{log})` with the step :math:`\Delta`. The result, :math:`Q (K^T (w
    \odot V)) + D V`, is normalized and, unlike in Mamba, multiplied by the gate without
    an activation. Extra tokens are not convolved. Weights of a row do not sum to 1, so
    AttnScale is not exactly the paper's high-pass filter.

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads h, of 2 C / h values each.
        state_dims (int, optional): Channels of queries and keys. Default: 2 C / h, as
            in the paper's models.
        attn_scale, init_cfg: See :class:`BaseAttention`.

    Raises:
        ValueError: If ``state_dims`` is not positive.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        state_dims: Optional[int] = None,
        *,
        attn_scale: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(
            embed_dims, num_heads, attn_scale=attn_scale, init_cfg=init_cfg
        )
        self.value_dims = 2 * embed_dims
        if state_dims is None:
            state_dims = self.value_dims // num_heads
        check_count(state_dims, 'state_dims')
        self.state_dims = state_dims
        convolved = self.value_dims + 2 * state_dims
        self.in_proj = nn.Linear(
            embed_dims, self.value_dims + convolved + num_heads, bias=False
        )
        self.conv = DepthwiseConv(convolved)
        decays = torch.empty(num_heads).uniform_(*_DECAYS)
        self.A_log = nn.Parameter(decays.log())
        steps = torch.empty(num_heads).uniform_(*map(math.log, _STEPS)).exp()
        self.dt_bias = nn.Parameter(steps + (-torch.expm1(-steps)).log())
        self.D = nn.Parameter(torch.ones(num_heads))
        self.norm = NormOfSums(self.value_dims)
        self.proj = nn.Linear(self.value_dims, embed_dims, bias=False)

    @property
    def dims_of_heads(self) -> tuple[int, ...]:
        return (self.value_dims // self.num_heads,) * self.num_heads

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        gate, tokens, steps = self.in_proj(x).split(
            (self.value_dims, self.conv.in_channels, self.num_heads), -1
        )
        tokens = silu(self.conv.convolve_map(tokens, hw_shape))
        v, k, q = tokens.split((self.value_dims, *[self.state_dims] * 2), -1)
        k, weights = at_least_float32(k, self.weigh(steps))
        if self.omega is None and self.attends_as(VSSDAttention):
            out = non_causal_ssd(q, k, v, weights, self.D)
        else:
            out = self.attend(q, torch.cat((k, weights), -1), v, hw_shape)
        return self.proj(self.norm(out).to(gate.dtype) * gate)

    def weigh(self, steps: Tensor) -> Tensor:
        """Return weights of the tokens (B, N, h) for their projected steps."""
        with autocast_disabled(steps):
            steps, bias, decays = at_least_float32(steps, self.dt_bias, self.A_log)
            return softplus(steps + bias) * decays.exp()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        """See :meth:`BaseAttention.attend`. Queries have n channels, keys n and after
        them the weights of each head, values 2 C, as the output."""
        k, weights = k.split((self.state_dims, self.num_heads), -1)
        out = non_causal_ssd(q, k, v, weights, self.D)
        if self.omega is None:
            return out
        (v,) = at_least_float32(v)
        return self.merge_heads(self.scale(self.split_heads(out), self.split_heads(v)))
