"""The linear attention of NaLaFormer as a module."""

from typing import Optional

from torch import Tensor, nn
from torch.nn.functional import silu

from mmlinattn.functional import norm_aware_attention
from mmlinattn.parts import register

from ..layers.types import HW
from .rank_augmented import GatedRotaryAttention


@register
class NormAwareLinearAttention(GatedRotaryAttention):
    """Norm-aware linear attention of *Norm x Direction: Restoring the Missing Query
    Norm in Vision Linear Attention* (NaLaFormer, arXiv 2506.21137), with the official
    code's rotary positions and 5 x 5 LePE.

    A LayerNorm follows the sum of the product and LePE, and SiLU of the fourth
    projection gates its output.

    Its arguments are those of :class:`GatedRotaryAttention`.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        *,
        qkv_bias: bool = True,
        attn_scale: bool = False,
        shared_qk: bool = False,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(
            embed_dims,
            num_heads,
            qkv_bias=qkv_bias,
            attn_scale=attn_scale,
            shared_qk=shared_qk,
            init_cfg=init_cfg,
        )
        self.norm = nn.LayerNorm(embed_dims)

    def forward(self, x: Tensor, hw_shape: HW) -> Tensor:
        q, k, v, gate = self.project(x)
        out = self.attend(q, k, v, hw_shape) + self.encode_positions(v, hw_shape)
        return self.project_back(self.norm(out) * silu(gate))

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        return norm_aware_attention(q, k, v, hw_shape, self.steps)
