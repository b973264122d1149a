"""Vision Transformer."""

from mmlinattn.parts import register

from .defaults import with_defaults
from .isotropic import IsotropicTransformer


@register
class VisionTransformer(IsotropicTransformer):
    """Vision Transformer as trained by DeiT (*Training data-efficient image
    transformers & distillation through attention*, arXiv 2012.12877).

    Sizes are those of ``arch_zoo``; for arguments, see
    :class:`~.isotropic.IsotropicTransformer`.
    """

    arch_zoo = {
        'deit-small': dict(embed_dims=384, num_layers=12, num_heads=6),
        'deit-base': dict(embed_dims=768, num_layers=12, num_heads=12),
    }
    __init__ = with_defaults(IsotropicTransformer.__init__, arch='deit-small')
