"""Standard attention."""
from torch import nn

from mmlinattn.registry import MODELS
from .base import BaseAttention


@MODELS.register_module()
class SoftmaxAttention(BaseAttention):
    """Multi-head softmax attention (*Attention Is All You Need*).

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads h.
        qkv_bias (bool): Biases of the three projections.
        attn_drop (float): Dropout rate on attention weights.
        attn_scale (bool): Learns one AttnScale factor per head. With
            attention dropout the product of the dropped weights is scaled,
            which has the mean of dropping scaled weights.
        init_cfg (dict, optional): Initialization of MMEngine.
    """

    def __init__(self,
                 embed_dims,
                 num_heads,
                 qkv_bias=True,
                 attn_drop=0.,
                 attn_scale=False,
                 init_cfg=None):
        super().__init__(embed_dims, num_heads, attn_scale, init_cfg)
        self.qkv = nn.Linear(embed_dims, 3 * embed_dims, bias=qkv_bias)
        self.attn_drop = attn_drop
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(self, x, hw_shape):
        q, k, v = map(self.split_heads, self.qkv(x).chunk(3, dim=-1))
        out = nn.functional.scaled_dot_product_attention(
            q, k, v, dropout_p=self.attn_drop if self.training else 0.)
        return self.proj(self.merge_heads(self.scale(out, v)))
