"""ViT^3 and H-ViT^3."""

from mmlinattn.parts import register

from .defaults import with_defaults
from .isotropic import IsotropicTransformer
from .pyramid import PyramidTransformer, with_heads


@register
class HViTTT(PyramidTransformer):
    """H-ViT^3, the pyramid of *ViT^3: Unlocking Test-Time Training in Vision* (arXiv
    2512.01643). Its ``out_norm``, 'all', is for detectors and segmentors; the paper's
    classifiers have None, and their norm is :class:`~..necks.ConvPoolingNeck` without a
    convolution.

    Sizes are those of ``arch_zoo``; for arguments, see
    :class:`~.pyramid.PyramidTransformer`.
    """

    arch_zoo = {
        'tiny': with_heads([64, 128, 320, 512], [1, 3, 9, 4]),
        'small': with_heads([64, 128, 320, 512], [2, 6, 18, 8]),
        'base': with_heads([96, 192, 448, 640], [2, 6, 18, 8]),
    }
    __init__ = with_defaults(
        PyramidTransformer.__init__,
        stem=dict(type='ResidualStem', residual=False),
        merging=dict(type='InvertedMerging'),
        attention=dict(type='TTTAttention'),
        block=dict(norm_eps=1e-5, position_convs=1, ffn_conv=True, ffn_conv_act=True),
        out_norm='all',
        norm_eps=1e-5,
    )


@register
class ViTTT(IsotropicTransformer):
    """ViT^3, the plain model of *ViT^3: Unlocking Test-Time Training in Vision* (arXiv
    2512.01643). It has no class token, and no positions but those of convolutions.

    Sizes are those of ``arch_zoo``; for arguments, see
    :class:`~.isotropic.IsotropicTransformer`.
    """

    arch_zoo = {
        'tiny': dict(embed_dims=192, num_layers=12, num_heads=6),
        'small': dict(embed_dims=384, num_layers=12, num_heads=6),
        'base': dict(embed_dims=768, num_layers=12, num_heads=12),
    }
    __init__ = with_defaults(
        IsotropicTransformer.__init__,
        attention=dict(type='TTTAttention', rotary=False),
        with_pos_embed=False,
        with_cls_token=False,
        block=dict(position_convs=1),
    )
