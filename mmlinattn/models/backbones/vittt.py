"""ViT^3 and H-ViT^3."""

from typing import Any, Optional, Union

from typing_extensions import Unpack

from mmlinattn.registry import MODELS

from .base import check_cls_token
from .isotropic import IsotropicOptions, IsotropicTransformer
from .pyramid import PyramidOptions, PyramidTransformer, with_heads


@MODELS.register_module()
class HViTTT(PyramidTransformer):
    """H-ViT^3, the pyramid of *ViT^3: Unlocking Test-Time Training in Vision* (arXiv
    2512.01643).

    Args:
        arch (str | dict): 'tiny', 'small', 'base', or a dict with ``embed_dims``,
            ``depths`` and ``num_heads``.
        attention (dict | list): See :class:`~.pyramid.PyramidTransformer`.
        out_norm (str, optional): See :class:`~.pyramid.PyramidTransformer`; 'all' is
            for detectors and segmentors, None for the paper's classifiers, whose norm
            is :class:`~..necks.ConvPoolingNeck` without a convolution.
        **kwargs: See :class:`~.pyramid.PyramidTransformer`.
    """

    arch_zoo = {
        'tiny': with_heads([64, 128, 320, 512], [1, 3, 9, 4]),
        'small': with_heads([64, 128, 320, 512], [2, 6, 18, 8]),
        'base': with_heads([96, 192, 448, 640], [2, 6, 18, 8]),
    }

    def __init__(
        self,
        arch: Union[str, dict[str, Any]] = 'tiny',
        attention: Any = dict(type='TTTAttention'),
        out_norm: Optional[str] = 'all',
        **kwargs: Unpack[PyramidOptions],
    ) -> None:
        super().__init__(
            arch,
            stem=dict(type='ResidualStem', residual=False),
            merging=dict(type='InvertedMerging'),
            attention=attention,
            block=dict(
                norm_eps=1e-5, position_convs=1, ffn_conv=True, ffn_conv_act=True
            ),
            out_norm=out_norm,
            norm_eps=1e-5,
            **kwargs,
        )


@MODELS.register_module()
class ViTTT(IsotropicTransformer):
    """ViT^3, the plain model of *ViT^3: Unlocking Test-Time Training in Vision* (arXiv
    2512.01643). It has no class token, and no positions but those of convolutions.

    Args:
        arch (str | dict): 'tiny', 'small', 'base', or a dict with ``embed_dims``,
            ``num_layers`` and ``num_heads``.
        attention (dict): Config of the attention.
        **kwargs: See :class:`~.isotropic.IsotropicTransformer`.
    """

    arch_zoo = {
        'tiny': dict(embed_dims=192, num_layers=12, num_heads=6),
        'small': dict(embed_dims=384, num_layers=12, num_heads=6),
        'base': dict(embed_dims=768, num_layers=12, num_heads=12),
    }

    with_cls_token = False

    def __init__(
        self,
        arch: Union[str, dict[str, Any]] = 'tiny',
        attention: dict[str, Any] = dict(type='TTTAttention', rotary=False),
        **kwargs: Unpack[IsotropicOptions],
    ) -> None:
        check_cls_token(False, kwargs)
        super().__init__(
            arch,
            attention,
            with_pos_embed=False,
            with_cls_token=False,
            block=dict(position_convs=1),
            **kwargs,
        )
