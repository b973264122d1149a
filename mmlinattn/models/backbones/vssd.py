"""VSSD."""

from typing import Optional, Union

from mmlinattn.parts import register

from ..layers.types import Indices
from .pyramid import PyramidTransformer


@register
class VSSD(PyramidTransformer):
    """VSSD (*VSSD: Vision Mamba with Non-Causal State Space Duality*, arXiv
    2407.18559).

    All stages but the last have linear attention with a gate and a convolution, the
    last one softmax attention over the whole map. Position convolutions, stem and
    merging are those of MLLA, but nothing pads odd sides before these two.

    Args:
        arch (str | dict): 'micro', 'tiny', 'small', 'base', or a dict with
            ``embed_dims``, ``depths`` and ``num_heads``.
        attention (dict | list, optional): See :class:`~.pyramid.PyramidTransformer`.
        out_norm (str, optional): See :class:`~.pyramid.PyramidTransformer`.
        Others: See :class:`~.pyramid.PyramidTransformer`.
    """

    arch_zoo = {
        'micro': dict(embed_dims=48, depths=[2, 2, 8, 4], num_heads=[2, 4, 8, 16]),
        'tiny': dict(embed_dims=64, depths=[2, 4, 8, 4], num_heads=[2, 4, 8, 16]),
        'small': dict(embed_dims=64, depths=[3, 4, 21, 5], num_heads=[2, 4, 8, 16]),
        'base': dict(embed_dims=96, depths=[3, 4, 21, 5], num_heads=[3, 6, 12, 24]),
    }

    def __init__(
        self,
        arch: Union[str, dict] = 'tiny',
        attention: Union[dict, list, None] = None,
        out_norm: Optional[str] = 'all',
        *,
        in_channels: int = 3,
        drop_rate: float = 0.0,
        drop_path_rate: float = 0.0,
        norm_cfg: Optional[dict] = None,
        attn_scale: bool = False,
        feat_scale: bool = False,
        out_indices: Optional[Indices] = None,
        out_type: str = 'featmap',
        frozen_stages: int = -1,
        norm_eval: bool = False,
        with_cp: bool = False,
        mask_padding: Union[bool, str] = 'evaluation',
        init_cfg: Union[dict, list, None] = None,
    ) -> None:
        arch = self.resolve_arch(arch)
        linear = [dict(type='VSSDAttention')] * (len(arch['depths']) - 1)
        softmax = dict(type='SoftmaxAttention', qkv_bias=False)
        super().__init__(
            arch,
            stem=dict(type='ResidualStem', pads=False),
            merging=dict(type='InvertedMerging', pads=False),
            attention=attention or [*linear, softmax],
            block=dict(norm_eps=1e-5, position_convs=2),
            out_norm=out_norm,
            norm_eps=1e-5,
            in_channels=in_channels,
            drop_rate=drop_rate,
            drop_path_rate=drop_path_rate,
            norm_cfg=norm_cfg,
            attn_scale=attn_scale,
            feat_scale=feat_scale,
            out_indices=out_indices,
            out_type=out_type,
            frozen_stages=frozen_stages,
            norm_eval=norm_eval,
            with_cp=with_cp,
            mask_padding=mask_padding,
            init_cfg=init_cfg,
        )
