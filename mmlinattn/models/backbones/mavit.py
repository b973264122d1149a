"""MAViT."""

from mmlinattn.registry import MODELS

from .ravlt import RAVLT


@MODELS.register_module()
class MAViT(RAVLT):
    """MAViT (*Rectifying Magnitude Neglect in Linear Attention*, arXiv 2507.00698):
    RAVLT with magnitude-aware linear attention in the first two stages, in the same
    sizes.

    Args:
        arch, layer_scale, out_norm, **kwargs: See :class:`~.ravlt.RAVLT`.
    """

    linear_attention = dict(type='MagnitudeAwareAttention')
