"""Standard attention."""

from torch import nn

from mmlinattn.registry import MODELS

from .base import ProjectedAttention


@MODELS.register_module()
class SoftmaxAttention(ProjectedAttention):
    """Multi-head softmax attention (*Attention Is All You Need*).

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads h.
        qkv_bias (bool): Biases of the three projections.
        attn_drop (float): Dropout rate on attention weights.
        lepe (bool): Adds a 3 x 3 depthwise convolution of the values, as
            CSWin's last stage and *ELFATT*'s VaniATT do. Extra tokens are
            not convolved.
        shared_qk (bool): One projection serves queries and keys, as in the ablation
            of *Softmax-free Linear Transformers*.
        attn_scale (bool): Learns one AttnScale factor per head. With
            attention dropout, it scales the product of the dropped weights,
            which has the same mean as dropping scaled weights.
        init_cfg (dict, optional): Initialization of MMEngine.
    """

    def __init__(
        self,
        embed_dims,
        num_heads,
        qkv_bias=True,
        attn_drop=0.0,
        lepe=False,
        shared_qk=False,
        attn_scale=False,
        init_cfg=None,
    ):
        super().__init__(
            embed_dims, num_heads, qkv_bias, lepe, attn_scale, init_cfg, shared_qk
        )
        self.attn_drop = attn_drop

    def attend(self, q, k, v, hw_shape):
        q, k, v = [self.split_heads(x) for x in (q, k, v)]
        out = nn.functional.scaled_dot_product_attention(
            q, k, v, dropout_p=self.attn_drop if self.training else 0.0
        )
        return self.merge_heads(self.scale(out, v))
