"""Efficient attention as a module."""

from mmlinattn import functional as F
from mmlinattn.registry import MODELS

from .base import ProjectedAttention


@MODELS.register_module()
class EfficientAttention(ProjectedAttention):
    """Softmax over the channels of queries and over the tokens of keys
    (*Efficient Attention: Attention with Linear Complexities*, arXiv
    1812.01243; EFFATT in the ELFATT paper's tables).

    Its arguments are those of :class:`ProjectedAttention`.
    """

    def attend(self, q, k, v, hw_shape):
        q, k, v = [self.split_heads(x) for x in (q, k, v)]
        out = F.efficient_attention(q, k, v)
        return self.merge_heads(self.scale(out, v))
