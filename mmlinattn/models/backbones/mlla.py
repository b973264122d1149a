"""MLLA."""

from typing import Union

from typing_extensions import Unpack

from mmlinattn.registry import MODELS

from .pyramid import PyramidOptions, PyramidTransformer, with_heads


@MODELS.register_module()
class MLLA(PyramidTransformer):
    """MLLA, also called MILA (*Demystify Mamba in Vision: A Linear Attention
    Perspective*, arXiv 2405.16605).

    Args:
        arch (str | dict): 'tiny', 'small', 'base', or a dict with ``embed_dims``,
            ``depths`` and ``num_heads``.
        attention (dict | list): See :class:`~.pyramid.PyramidTransformer`.
        **kwargs: See :class:`~.pyramid.PyramidTransformer`.
    """

    arch_zoo = {
        'tiny': with_heads([64, 128, 256, 512], [2, 4, 8, 4]),
        'small': with_heads([64, 128, 256, 512], [3, 6, 21, 6]),
        'base': with_heads([96, 192, 384, 768], [3, 6, 21, 6]),
    }

    def __init__(
        self,
        arch: Union[str, dict] = 'tiny',
        attention: Union[dict, list] = dict(type='MLLAAttention'),
        **kwargs: Unpack[PyramidOptions],
    ) -> None:
        super().__init__(
            arch,
            stem=dict(type='ResidualStem'),
            merging=dict(type='InvertedMerging'),
            attention=attention,
            block=dict(norm_eps=1e-5, position_convs=2),
            out_norm='all',
            norm_eps=1e-5,
            **kwargs,
        )
