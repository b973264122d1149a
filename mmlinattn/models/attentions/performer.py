"""Performer attention as a module."""

import math

from mmlinattn import functional as F
from mmlinattn.registry import MODELS

from .base import ProjectedAttention


@MODELS.register_module()
class PerformerAttention(ProjectedAttention):
    """FAVOR+: softmax attention estimated from positive orthogonal random
    features (*Rethinking Attention with Performers*, arXiv 2009.14794).

    The features are drawn once, when the module is made, and belong to its state
    dict. The output is deterministic.

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads h.
        num_features (int, optional): Random features m. Default: d ln d, at
            least d.
        qkv_bias (bool): Biases of the three projections.
        lepe (bool): Adds a 3 x 3 depthwise convolution of the values, to the
            map's tokens only.
        attn_scale (bool): Learns one AttnScale factor per head. The mean is
            taken over all tokens.
        init_cfg (dict, optional): Initialization of MMEngine.

    Raises:
        ValueError: If ``num_features`` is not a positive integer.
    """

    def __init__(
        self,
        embed_dims,
        num_heads,
        num_features=None,
        qkv_bias=True,
        lepe=False,
        attn_scale=False,
        init_cfg=None,
    ):
        super().__init__(embed_dims, num_heads, qkv_bias, lepe, attn_scale, init_cfg)
        if num_features is None:
            num_features = int(self.head_dims * max(math.log(self.head_dims), 1))
        if not isinstance(num_features, int) or num_features < 1:
            raise ValueError(
                f'num_features must be a positive integer, got {num_features!r}'
            )
        self.register_buffer(
            'features', F.orthogonal_features(num_features, self.head_dims)
        )

    def attend(self, q, k, v, hw_shape):
        q, k, v = [self.split_heads(x) for x in (q, k, v)]
        out = F.performer_attention(q, k, v, self.features)
        return self.merge_heads(self.scale(out, v))
