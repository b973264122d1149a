"""The linear attention of MAViT as a module."""

from torch import Tensor

from mmlinattn.functional import magnitude_aware_attention
from mmlinattn.registry import MODELS

from ..layers.types import HW
from .rank_augmented import GatedRotaryAttention


@MODELS.register_module()
class MagnitudeAwareAttention(GatedRotaryAttention):
    """Magnitude-aware linear attention (MALA) of *Rectifying Magnitude Neglect in
    Linear Attention* (arXiv 2507.00698), with the official code's rotary positions,
    5 x 5 LePE and gate.

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads h, of an even number of channels each.
        **kwargs: ``qkv_bias``, ``attn_scale``, ``shared_qk`` and ``init_cfg`` of
            :class:`ProjectedAttention`.

    Raises:
        ValueError: If C / h is odd.
    """

    def attend(self, q: Tensor, k: Tensor, v: Tensor, hw_shape: HW) -> Tensor:
        q, k, v = [self.split_heads(x) for x in (q, k, v)]
        out = magnitude_aware_attention(q, k, v, hw_shape, self.steps)
        return self.merge_heads(self.scale(out, v))
