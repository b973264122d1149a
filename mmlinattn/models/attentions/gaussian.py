"""Exact Gaussian attention as a module."""

from typing import Optional

from torch import Tensor

from mmlinattn.functional import gaussian_attention
from mmlinattn.functional.precision import at_least_float32
from mmlinattn.parts import register

from ..layers.types import HW
from .base import ProjectedAttention


@register
class GaussianAttention(ProjectedAttention):
    """Attention with the whole Gaussian kernel, or with its softmax: what SOFT (arXiv
    2110.11945) sets out from, and finds not to converge. Time is quadratic in the
    number of tokens, memory linear; the softmax takes ten products in place of one.

    Args:
        softmax (bool): Takes the softmax of each row of the kernel.
        shared_qk (bool): One projection serves queries and keys, as in SOFT.
        Others: See :class:`ProjectedAttention`.
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        softmax: bool = False,
        *,
        qkv_bias: bool = True,
        lepe: bool = False,
        attn_scale: bool = False,
        shared_qk: bool = True,
        init_cfg: Optional[dict] = None,
    ) -> None:
        super().__init__(
            embed_dims,
            num_heads,
            qkv_bias=qkv_bias,
            lepe=lepe,
            attn_scale=attn_scale,
            shared_qk=shared_qk,
            init_cfg=init_cfg,
        )
        self.softmax = softmax

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        if not self.softmax:
            # its sums grow to N times the values, beyond float16
            (v,) = at_least_float32(v)
        scale = self.head_dims**-0.25
        return gaussian_attention(scale * q, scale * k, v, self.softmax)

    def count_products(self, x: Tensor, hw_shape: HW) -> dict[str, int]:
        """Count the multiply-accumulates of the kernel and of its product with the
        values: see :func:`mmlinattn.analysis.count_flops`."""
        return dict(gaussian_kernel=2 * x.numel() * x.size(1))

    def project_back(self, out: Tensor) -> Tensor:
        return self.proj(out) if self.softmax else self.project_in_float32(out)
