"""Exact Gaussian attention as a module."""

from torch import Tensor
from typing_extensions import Unpack

from mmlinattn.functional import gaussian_attention
from mmlinattn.functional.precision import at_least_float32
from mmlinattn.registry import MODELS

from ..layers.types import HW
from .base import LePEOptions, ProjectedAttention


@MODELS.register_module()
class GaussianAttention(ProjectedAttention):
    """Attention with the whole Gaussian kernel, or with its softmax: what SOFT (arXiv
    2110.11945) sets out from, and finds not to converge. Time is quadratic in the
    number of tokens, memory linear; the softmax takes ten products in place of one.

    Args:
        softmax (bool): Takes the softmax of each row of the kernel.
        shared_qk (bool): One projection serves queries and keys, as in SOFT.
        embed_dims, num_heads, **kwargs: See :class:`ProjectedAttention`.
    """

    own_defaults = dict(shared_qk=True)

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        softmax: bool = False,
        **kwargs: Unpack[LePEOptions],
    ) -> None:
        kwargs.setdefault('shared_qk', True)
        super().__init__(embed_dims, num_heads, **kwargs)
        self.softmax = softmax

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        if not self.softmax:
            # its sums grow to N times the values, beyond float16
            (v,) = at_least_float32(v)
        scale = self.head_dims**-0.25
        return gaussian_attention(scale * q, scale * k, v, self.softmax)

    def count_products(self, x: Tensor, hw_shape: HW) -> dict[str, int]:
        """Multiply-accumulates of the kernel and of its product with the values: see
        :func:`mmlinattn.analysis.count_flops`."""
        return dict(gaussian_kernel=2 * x.numel() * x.size(1))

    def project_back(self, out: Tensor) -> Tensor:
        return self.proj(out) if self.softmax else self.project_in_float32(out)
