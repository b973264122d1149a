"""RAVLT and MAViT."""

from typing import Any, Optional, Union

from mmlinattn.parts import register

from ..layers.types import Indices
from .base import DEFAULT_INIT
from .pyramid import PyramidTransformer, per_stage


@register
class RAVLT(PyramidTransformer):
    """RAVLT (*Breaking the Low-Rank Dilemma of Linear Attention*, arXiv 2411.07635).

    The first two stages have linear attention, the last two softmax attention over the
    whole map.

    Args:
        arch (str | dict): 'tiny', 'small', 'base', 'large', or a dict with
            ``embed_dims``, ``depths`` and ``num_heads``.
        attention (dict | list, optional): See :class:`~.pyramid.PyramidTransformer`.
        out_norm (str, optional): See :class:`~.pyramid.PyramidTransformer`; 'all' is
            for detectors and segmentors, None for the paper's classifiers, whose norm
            is part of :class:`~..necks.ConvPoolingNeck`.
        Others: See :class:`~.pyramid.PyramidTransformer`.
    """

    arch_zoo = {
        'tiny': dict(
            embed_dims=[64, 128, 256, 512], depths=[2, 2, 6, 2], num_heads=[1, 2, 4, 8]
        ),
        'small': dict(
            embed_dims=[64, 128, 320, 512], depths=[3, 5, 9, 3], num_heads=[1, 2, 5, 8]
        ),
        'base': dict(
            embed_dims=[96, 192, 384, 512], depths=[4, 6, 12, 6], num_heads=[1, 2, 6, 8]
        ),
        'large': dict(
            embed_dims=[96, 192, 448, 640],
            depths=[4, 7, 19, 8],
            num_heads=[1, 2, 7, 10],
        ),
    }
    linear_attention = dict(type='RankAugmentedAttention')
    default_init = [dict(DEFAULT_INIT[0], layer=['Linear', 'Conv2d']), DEFAULT_INIT[1]]
    # starts of the LayerScale factors, of all stages or of each; otherwise 1
    layer_scales: dict[str, Any] = {'base': [1.0, 1.0, 1e-6, 1e-6], 'large': 1e-6}

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
        layer_scale = self.layer_scales.get(arch, 1.0) if isinstance(arch, str) else 1.0
        arch = self.resolve_arch(arch)
        dims = arch['embed_dims']
        softmax = dict(type='RotarySoftmaxAttention')
        attentions = [self.linear_attention] * 2 + [softmax] * 2
        super().__init__(
            arch,
            stem=dict(
                type='ConvStem',
                mid_channels=dims[0] // 2,
                num_convs=4,
                act_cfg=dict(type='GELU'),
                last_act=False,
            ),
            merging=dict(type='ConvEmbedding', act_cfg=None),
            attention=attention or attentions[: len(dims)],
            block=[
                dict(position_convs=1, ffn_ratio=3.5, ffn_conv=True, layer_scale=scale)
                for scale in per_stage(layer_scale, len(dims), 'layer_scale')
            ],
            out_norm=out_norm,
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


@register
class MAViT(RAVLT):
    """MAViT (*Rectifying Magnitude Neglect in Linear Attention*, arXiv 2507.00698):
    :class:`RAVLT` with magnitude-aware linear attention in the first two stages, with
    the same sizes and arguments."""

    linear_attention = dict(type='MagnitudeAwareAttention')
