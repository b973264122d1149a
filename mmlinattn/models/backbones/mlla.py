"""MLLA."""

from mmlinattn.parts import register

from .defaults import with_defaults
from .pyramid import PyramidTransformer, with_heads


@register
class MLLA(PyramidTransformer):
    """MLLA, also called MILA (*Demystify Mamba in Vision: A Linear Attention
    Perspective*, arXiv 2405.16605).

    Sizes are those of ``arch_zoo``; for arguments, see
    :class:`~.pyramid.PyramidTransformer`.
    """

    arch_zoo = {
        'tiny': with_heads([64, 128, 256, 512], [2, 4, 8, 4]),
        'small': with_heads([64, 128, 256, 512], [3, 6, 21, 6]),
        'base': with_heads([96, 192, 384, 768], [3, 6, 21, 6]),
    }
    __init__ = with_defaults(
        PyramidTransformer.__init__,
        stem=dict(type='ResidualStem'),
        merging=dict(type='InvertedMerging'),
        attention=dict(type='MLLAAttention'),
        block=dict(norm_eps=1e-5, position_convs=2),
        out_norm='all',
        norm_eps=1e-5,
    )
