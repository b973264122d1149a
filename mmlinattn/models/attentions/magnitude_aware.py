"""The linear attention of MAViT as a module."""

from torch import Tensor

from mmlinattn.functional import magnitude_aware_attention
from mmlinattn.parts import register

from ..layers.types import HW
from .rank_augmented import GatedRotaryAttention


@register
class MagnitudeAwareAttention(GatedRotaryAttention):
    """Magnitude-aware linear attention (MALA) of *Rectifying Magnitude Neglect in
    Linear Attention* (arXiv 2507.00698), with the official code's rotary positions,
    5 x 5 LePE and gate.

    Its arguments are those of :class:`GatedRotaryAttention`.
    """

    def product(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        return magnitude_aware_attention(q, k, v, hw_shape, self.steps)
