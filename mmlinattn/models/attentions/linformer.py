"""Linformer attention on maps."""

from torch import nn

from mmlinattn import functional as F
from mmlinattn.registry import MODELS

from .base import BaseAttention, check_count
from .softmax import SoftmaxAttention


@MODELS.register_module()
class LinformerAttention(BaseAttention):
    r"""Softmax attention to a shorter sequence of keys and values.

    *Linformer: Self-Attention with Linear Complexity* (arXiv 2006.04768):
    :math:`\sigma(Q (E K)^T / \sqrt d) F V` with learned projections E, F along
    the tokens. The paper's projections fix the length of the sequence. Here both are
    the r x r convolution of stride r and the LayerNorm of *Pyramid Vision
    Transformer* (arXiv 2102.12122), which work for maps of any size. The sequence
    gets :math:`r^2` times shorter, and the cost is :math:`N^2 / r^2`. With r above 1,
    it is bound to the map.

    Args:
        sr_ratio (int): r. Maps are zero-padded to multiples of r; 1 is standard
            attention.
        qkv_bias (bool): Biases of the three projections.
        attn_drop (float): Dropout rate on attention weights.
        embed_dims, num_heads, **kwargs: See :class:`BaseAttention`.

    Raises:
        ValueError: If ``sr_ratio`` is not a positive integer.
    """

    def __init__(
        self, embed_dims, num_heads, sr_ratio=8, qkv_bias=True, attn_drop=0.0, **kwargs
    ):
        super().__init__(embed_dims, num_heads, **kwargs)
        check_count(sr_ratio, 'sr_ratio')
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

    @property
    def bound_to_map(self):
        return self.sr_ratio > 1

    def forward(self, x, hw_shape):
        k, v = self.kv(self.reduce(x, hw_shape)).chunk(2, dim=-1)
        return self.proj(self.attend(self.q(x), k, v, hw_shape))

    def key_shape(self, hw_shape):
        return tuple(-(-length // self.sr_ratio) for length in hw_shape)

    attend = SoftmaxAttention.attend

    def reduce(self, x, hw_shape):
        """Tokens (B, N, C) to tokens (B, M, C), one for each r x r cell."""
        if self.sr_ratio == 1:
            return x
        self.check_map(x, hw_shape)
        x, padded_shape = F.pad_map(x, hw_shape, self.sr_ratio)
        x = self.reduction(F.to_map(x, padded_shape))
        return self.norm(F.to_tokens(x))
