"""SOFT and SOFT++.

Three stages of softmax-free attention, post-norm, and one of standard
attention, pre-norm, with a class token.
"""

from collections.abc import Sequence
from typing import Optional, Union

from mmlinattn.parts import register

from ..attentions.softmax_free import SoftmaxFreeAttention
from ..layers.types import HW, Indices
from .defaults import with_defaults
from .options import check_config
from .pyramid import PyramidTransformer, per_stage, with_heads

# Stem and merging by name.
PATCH_EMBEDS: dict[str, tuple[dict, dict]] = {
    'overlap': (dict(type='ConvStem'), dict(type='ConvEmbedding')),
    'patch': (
        dict(type='ConvEmbedding', kernel_size=4, stride=4),
        dict(type='ConvEmbedding', kernel_size=2, stride=2),
    ),
}


def choose_embeddings(patch_embed: Union[str, dict]) -> tuple[dict, dict]:
    """Return configs of the first embedding and of those between stages."""
    if not isinstance(patch_embed, str):
        return check_config(patch_embed, 'patch_embed'), PATCH_EMBEDS['overlap'][1]
    if patch_embed not in PATCH_EMBEDS:
        raise ValueError(
            f'patch_embed must be one of {sorted(PATCH_EMBEDS)} or a config, '
            f'got {patch_embed!r}'
        )
    return PATCH_EMBEDS[patch_embed]


@register
class SOFT(PyramidTransformer):
    """SOFT (*SOFT: Softmax-free Transformer with Linear Complexity*, arXiv
    2110.11945).

    Args:
        arch (str | dict): 'tiny', 'small', 'medium', 'large' or 'huge' as in
            the paper's Table 1, or a dict with ``embed_dims``, ``depths`` and
            ``num_heads``. A single stage makes the plain, non-pyramidal form.
        attn_norm (bool | str): SOFT++'s normalized kernel in this pyramid, or 'rows'.
        sampler (str): Landmarks by 'conv', 'pool', 'random' or 'biased'.
        sampling_ratios (Sequence[int]): Side of the map cell that a landmark
            stands for, one entry per stage; 1 is standard attention with a
            class token, possible in the last stage.
        num_landmarks (int, optional): A square number of landmarks in every
            softmax-free stage, for maps of any size, instead of
            ``sampling_ratios``.
        kernel_sizes (Sequence[int]): Side of the local branch's filters, one
            entry per stage.
        patch_embed (str | dict): 'overlap', 3 x 3 convolutions; 'patch', one
            convolution over disjoint patches; or the config of the first
            embedding, the others being those of 'overlap'.
        merging (dict, optional): Config of the embeddings between stages, instead
            of that of ``patch_embed``.
        attention (dict | list, optional): Another attention in every
            softmax-free stage. Or a list with one entry per stage, the last one
            included; None keeps the model's own attention.
        num_iters (int): Newton-Raphson steps.
        solver (str): See :func:`mmlinattn.functional.softmax_free_attention`.
        ridge (float, optional): Added to the diagonal of the landmarks'
            matrix. Default: 0 with ``attn_norm``, 0.01 without.
        relative_ridge (bool): Multiplies the ridge by the number of landmarks.
        exact_window (int): See :class:`SoftmaxFreeAttention`.
        keep_scale (bool): Keeps the norm of the attention as at ``img_size``, for
            weights that were trained there and maps of other sizes.
        img_size (int | tuple[int]): Side of the square images that the position tables
            are made for.
        Others: See :class:`~.pyramid.PyramidTransformer`.
    """

    arch_zoo = {
        'tiny': with_heads([64, 128, 320, 512], [1, 2, 3, 2]),
        'small': with_heads([64, 128, 320, 512], [1, 3, 7, 4]),
        'medium': with_heads([64, 128, 288, 512], [1, 3, 29, 5]),
        'large': with_heads([64, 128, 320, 512], [1, 3, 40, 5]),
        'huge': with_heads([64, 128, 352, 512], [1, 5, 49, 5]),
    }

    def __init__(
        self,
        arch: Union[str, dict] = 'tiny',
        attn_norm: Union[bool, str] = False,
        sampler: str = 'conv',
        sampling_ratios: Sequence[int] = (8, 4, 2, 1),
        num_landmarks: Optional[int] = None,
        kernel_sizes: Sequence[int] = (9, 5, 3, 3),
        patch_embed: Union[str, dict] = 'overlap',
        merging: Optional[dict] = None,
        attention: Union[dict, list, None] = None,
        num_iters: int = 20,
        solver: str = 'auto',
        ridge: Optional[float] = None,
        relative_ridge: bool = False,
        exact_window: int = 0,
        keep_scale: bool = False,
        img_size: Union[int, HW] = 224,
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
        num_stages = len(arch['embed_dims'])
        ratios = per_stage(sampling_ratios, num_stages, 'sampling_ratios')
        kernels = per_stage(kernel_sizes, num_stages, 'kernel_sizes')
        if 1 in ratios[:-1]:
            raise ValueError(
                'sampling_ratios must be at least 2, or 1 in the last stage, '
                f'got {tuple(ratios)}'
            )
        stem, own_merging = choose_embeddings(patch_embed)
        with_cls_token = ratios[-1] == 1

        attentions = [
            dict(
                type='SoftmaxFreeAttention',
                sampling_ratio=ratio,
                sampler=sampler,
                kernel_size=kernel,
                num_landmarks=num_landmarks,
                attn_norm=attn_norm,
                num_iters=num_iters,
                solver=solver,
                ridge=ridge,
                relative_ridge=relative_ridge,
                exact_window=exact_window,
            )
            for ratio, kernel in zip(ratios, kernels)
        ]
        post_norm = dict(
            norm_placement='post',
            norm_eps=1e-5,
            act_cfg=dict(type='GELU', approximate='tanh'),
        )
        blocks = [post_norm] * num_stages
        if with_cls_token:
            blocks[-1] = dict(norm_placement='pre', norm_eps=1e-6)
            attentions[-1] = dict(type='SoftmaxAttention')
        others = per_stage(attention, num_stages, 'attention')
        if with_cls_token and not isinstance(attention, (list, tuple)):
            others[-1] = None
        attentions = [other or own for other, own in zip(others, attentions)]
        super().__init__(
            arch,
            stem=stem,
            merging=merging or own_merging,
            attention=attentions,
            block=blocks,
            img_size=img_size,
            with_cls_token=with_cls_token,
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
        if keep_scale:
            self.keep_scale()

    def keep_scale(self) -> None:
        """Keep the norm of softmax-free attention as at ``img_size``."""
        for stage in self.stages:
            for block in stage.blocks:
                if isinstance(block.attn, SoftmaxFreeAttention):
                    block.attn.keep_scale(stage.pos_embed.hw_shape)


@register
class SOFTPlusPlus(SOFT):
    """SOFT++ (*Softmax-free Linear Transformers*, arXiv 2207.03341): SOFT
    with the normalized kernel and wider, shallower stages.

    Args:
        arch (str | dict): 'tiny', 'small', 'medium' or 'large' as in the
            paper, or a dict, see :class:`SOFT`.
        Others: See :class:`SOFT`.
    """

    __init__ = with_defaults(SOFT.__init__, attn_norm=True)

    arch_zoo = {
        'tiny': with_heads([64, 128, 256, 512], [2, 2, 5, 2]),
        'small': with_heads([96, 192, 384, 768], [2, 2, 5, 2]),
        'medium': with_heads([96, 192, 384, 768], [2, 2, 18, 2]),
        'large': with_heads([128, 256, 512, 1024], [2, 2, 18, 2]),
    }


@register
class LinearSOFTPlusPlus(SOFTPlusPlus):
    r"""SOFT++ whose landmarks do not grow with the image, ours.

    Its attention is :math:`\hat K V / \hat K 1`, with SOFT++'s landmarks averaged over
    49 cells, and one factorization as the inverse. It is the same operator at all
    sizes, as far as rounding and sampling permit: see docs/methods.md. The last stage
    is SOFT++'s, softmax attention of one token for each 32 x 32 pixels.

    Args:
        arch (str | dict): See :class:`SOFTPlusPlus`; 'micro', 1.4 million parameters,
            is ours.
        Others: See :class:`SOFT`.
    """

    arch_zoo = {
        **SOFTPlusPlus.arch_zoo,
        'micro': with_heads([32, 64, 96, 160], [1, 2, 4, 2]),
    }
    __init__ = with_defaults(
        SOFTPlusPlus.__init__,
        attn_norm='rows',
        sampler='conv',
        num_landmarks=49,
        solver='cholesky',
        ridge=0.001,
        relative_ridge=True,
    )
