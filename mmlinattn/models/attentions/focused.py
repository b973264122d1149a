"""Focused linear attention as a module."""

from mmlinattn import functional as F
from mmlinattn.registry import MODELS

from ..layers import LePE
from .base import ProjectedAttention


@MODELS.register_module()
class FocusedLinearAttention(ProjectedAttention):
    """Linear attention of *FLatten Transformer: Vision Transformer using
    Focused Linear Attention* (arXiv 2308.00442).

    A depthwise convolution of the values is added to the product. All heads share
    its d filters. This module leaves out what the official code has beyond the
    paper's equations: a learned scale, and a position table of the training map's
    size.

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads h.
        focusing_factor (float): Power p of the feature map, positive.
        kernel_size (int): Side of the convolution's filters, odd. Extra tokens
            are not convolved.
        qkv_bias (bool): Biases of the three projections.
        lepe (bool): Adds CSWin's 3 x 3 depthwise convolution of the values
            too, as FLatten-CSWin does.
        attn_scale (bool): Learns one AttnScale factor per head. The mean is
            taken over all tokens.
        init_cfg (dict, optional): Initialization of MMEngine.

    Raises:
        ValueError: If ``focusing_factor`` is not positive or ``kernel_size``
            is even.
    """

    def __init__(
        self,
        embed_dims,
        num_heads,
        focusing_factor=3,
        kernel_size=5,
        qkv_bias=True,
        lepe=False,
        attn_scale=False,
        init_cfg=None,
    ):
        super().__init__(embed_dims, num_heads, qkv_bias, lepe, attn_scale, init_cfg)
        if not focusing_factor > 0:
            raise ValueError(f'focusing_factor must be positive, got {focusing_factor}')
        self.focusing_factor = focusing_factor
        self.local_conv = LePE(self.head_dims, kernel_size)

    def attend(self, q, k, v, hw_shape):
        q, k, v = [self.split_heads(x) for x in (q, k, v)]
        out = F.focused_linear_attention(q, k, v, self.focusing_factor)
        local = self.local_conv(v.flatten(0, 1), hw_shape)  # (B * h, N, d)
        out = self.scale(out, v) + local.unflatten(0, v.shape[:2])
        return self.merge_heads(out)
