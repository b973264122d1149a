"""Linformer attention on maps."""

from torch import nn

from mmlinattn import functional as F
from mmlinattn.registry import MODELS

from .base import BaseAttention


@MODELS.register_module()
class LinformerAttention(BaseAttention):
    r"""Softmax attention to a shorter sequence of keys and values.

    *Linformer: Self-Attention with Linear Complexity* (arXiv 2006.04768):
    :math:`\sigma(Q (E K)^T / \sqrt d) F V` with learned projections E, F along
    the tokens. The paper's projections fix the length of the sequence. Here both are
    the r x r convolution of stride r and the LayerNorm of *Pyramid Vision
    Transformer* (arXiv 2102.12122), which work for maps of any size. The sequence
    gets :math:`r^2` times shorter, and the cost is :math:`N^2 / r^2`.

    Args:
        embed_dims (int): Channels C.
        num_heads (int): Heads h.
        sr_ratio (int): r. Maps are zero-padded to multiples of r; 1 is standard
            attention.
        qkv_bias (bool): Biases of the three projections.
        attn_drop (float): Dropout rate on attention weights.
        attn_scale (bool): Learns one AttnScale factor per head. The mean is
            taken over the shorter sequence.
        init_cfg (dict, optional): Initialization of MMEngine.

    Raises:
        ValueError: If ``sr_ratio`` is not a positive integer; in ``forward``,
            with ``sr_ratio`` above 1, if the map is empty or there are tokens
            besides the map's.
    """

    def __init__(
        self,
        embed_dims,
        num_heads,
        sr_ratio=8,
        qkv_bias=True,
        attn_drop=0.0,
        attn_scale=False,
        init_cfg=None,
    ):
        super().__init__(embed_dims, num_heads, attn_scale, init_cfg)
        if not isinstance(sr_ratio, int) or sr_ratio < 1:
            raise ValueError(f'sr_ratio must be a positive integer, got {sr_ratio!r}')
        self.sr_ratio = sr_ratio
        self.q = nn.Linear(embed_dims, embed_dims, bias=qkv_bias)
        self.kv = nn.Linear(embed_dims, 2 * embed_dims, bias=qkv_bias)
        if sr_ratio > 1:
            self.reduction = nn.Conv2d(
                embed_dims, embed_dims, sr_ratio, stride=sr_ratio
            )
            self.norm = nn.LayerNorm(embed_dims)
        self.attn_drop = attn_drop
        self.proj = nn.Linear(embed_dims, embed_dims)

    def forward(self, x, hw_shape):
        k, v = self.kv(self.reduce(x, hw_shape)).chunk(2, dim=-1)
        return self.proj(self.attend(self.q(x), k, v, hw_shape))

    def key_shape(self, hw_shape):
        return tuple(-(-length // self.sr_ratio) for length in hw_shape)

    def attend(self, q, k, v, hw_shape):
        q, k, v = [self.split_heads(x) for x in (q, k, v)]
        out = nn.functional.scaled_dot_product_attention(
            q, k, v, dropout_p=self.attn_drop if self.training else 0.0
        )
        return self.merge_heads(self.scale(out, v))

    def reduce(self, x, hw_shape):
        """Tokens (B, N, C) to tokens (B, M, C), one for each r x r cell."""
        if self.sr_ratio == 1:
            return x
        self.check_map(x, hw_shape)
        x, padded_shape = F.pad_map(x, hw_shape, self.sr_ratio)
        x = self.reduction(F.to_map(x, padded_shape))
        return self.norm(F.to_tokens(x))
