"""Efficient attention as a module."""

from mmlinattn import functional as F
from mmlinattn.registry import MODELS

from .base import ProjectedAttention


@MODELS.register_module()
class EfficientAttention(ProjectedAttention):
    """Softmax over the channels of queries and over the tokens of keys
    (*Efficient Attention: Attention with Linear Complexities*, arXiv
    1812.01243; EFFATT in the ELFATT paper's tables).

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads h.
        qkv_bias (bool): Biases of the three projections.
        lepe (bool): Adds a 3 x 3 depthwise convolution of the values, to the
            map's tokens only.
        attn_scale (bool): Learns one AttnScale factor per head. The mean is
            taken over all tokens.
        init_cfg (dict, optional): Initialization of MMEngine.
    """

    def attend(self, q, k, v, hw_shape):
        q, k, v = [self.split_heads(x) for x in (q, k, v)]
        out = F.efficient_attention(q, k, v)
        return self.merge_heads(self.scale(out, v))
