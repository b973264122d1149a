"""SOFT and SOFT++.

Three stages of softmax-free attention, post-norm, and one of standard
attention, pre-norm, with a class token.
"""

from mmlinattn.registry import MODELS

from .pyramid import PyramidTransformer, per_stage, resolve_pyramid_arch

PATCH_EMBEDS = {
    'overlap': (dict(type='ConvStem'), dict(type='ConvEmbedding')),
    'patch': (
        dict(type='ConvEmbedding', kernel_size=4, stride=4),
        dict(type='ConvEmbedding', kernel_size=2, stride=2),
    ),
}


@MODELS.register_module()
class SOFT(PyramidTransformer):
    """SOFT (*SOFT: Softmax-free Transformer with Linear Complexity*, arXiv
    2110.11945).

    Args:
        arch (str | dict): 'tiny', 'small', 'medium', 'large' or 'huge' as in
            the paper's Table 1, or a dict with ``embed_dims``, ``depths`` and
            ``num_heads``. A single stage makes the plain, non-pyramidal form.
        attn_norm (bool): SOFT++'s normalized kernel in this pyramid.
        sampler (str): Landmarks by 'conv', 'pool', 'random' or 'biased'.
        sampling_ratios (Sequence[int]): Side of the map cell that a landmark
            stands for, one entry a stage; 1 is standard attention with a
            class token, possible in the last stage.
        kernel_sizes (Sequence[int]): Side of the local branch's filters, one
            entry a stage.
        patch_embed (str | tuple[dict]): 'overlap', 3 x 3 convolutions;
            'patch', one convolution over disjoint patches; or the configs of
            stem and merging.
        attention (dict | list, optional): Another attention, in place of the
            softmax-free one.
        num_iters (int): Newton-Raphson steps.
        solver (str): See :func:`mmlinattn.functional.softmax_free_attention`.
        ridge (float, optional): Added to the diagonal of the landmarks'
            matrix. Default: 0 with ``attn_norm``, 0.01 without.
        img_size (int): Image side that the position tables are made for.
        **kwargs: See :class:`~.pyramid.PyramidTransformer`: ``in_channels``,
            ``out_indices``, ``out_type``, ``drop_path_rate``,
            ``frozen_stages``, ``norm_eval``, ``with_cp``, ``norm_cfg``,
            ``attn_scale``, ``feat_scale``, ``init_cfg``.
    """

    arch_zoo = {
        'tiny': dict(
            embed_dims=[64, 128, 320, 512],
            depths=[1, 2, 3, 2],
            num_heads=[2, 4, 10, 16],
        ),
        'small': dict(
            embed_dims=[64, 128, 320, 512],
            depths=[1, 3, 7, 4],
            num_heads=[2, 4, 10, 16],
        ),
        'medium': dict(
            embed_dims=[64, 128, 288, 512],
            depths=[1, 3, 29, 5],
            num_heads=[2, 4, 9, 16],
        ),
        'large': dict(
            embed_dims=[64, 128, 320, 512],
            depths=[1, 3, 40, 5],
            num_heads=[2, 4, 10, 16],
        ),
        'huge': dict(
            embed_dims=[64, 128, 352, 512],
            depths=[1, 5, 49, 5],
            num_heads=[2, 4, 11, 16],
        ),
    }

    def __init__(
        self,
        arch='tiny',
        attn_norm=False,
        sampler='conv',
        sampling_ratios=(8, 4, 2, 1),
        kernel_sizes=(9, 5, 3, 3),
        patch_embed='overlap',
        attention=None,
        num_iters=20,
        solver='auto',
        ridge=None,
        img_size=224,
        **kwargs,
    ):
        arch = resolve_pyramid_arch(arch, self.arch_zoo)
        num_stages = len(arch['embed_dims'])
        ratios = per_stage(sampling_ratios, num_stages, 'sampling_ratios')
        kernels = per_stage(kernel_sizes, num_stages, 'kernel_sizes')
        if 1 in ratios[:-1]:
            raise ValueError(
                'sampling_ratios must be at least 2, or 1 in the last stage, '
                f'got {tuple(ratios)}'
            )
        if img_size < 1:
            raise ValueError(f'img_size must be positive, got {img_size}')
        if patch_embed in list(PATCH_EMBEDS):
            patch_embed = PATCH_EMBEDS[patch_embed]
        if not isinstance(patch_embed, (list, tuple)) or len(patch_embed) != 2:
            raise ValueError(
                f'patch_embed must be one of {sorted(PATCH_EMBEDS)} or the '
                f'configs of stem and merging, got {patch_embed!r}'
            )
        stem, merging = patch_embed
        with_cls_token = ratios[-1] == 1

        attentions = [
            dict(
                type='SoftmaxFreeAttention',
                sampling_ratio=ratio,
                sampler=sampler,
                kernel_size=kernel,
                attn_norm=attn_norm,
                num_iters=num_iters,
                solver=solver,
                ridge=ridge,
            )
            for ratio, kernel in zip(ratios, kernels)
        ]
        if attention is not None:
            attentions = per_stage(attention, num_stages, 'attention')
        post_norm = dict(
            norm_placement='post',
            norm_eps=1e-5,
            act_cfg=dict(type='GELU', approximate='tanh'),
        )
        blocks = [post_norm] * num_stages
        if with_cls_token:
            blocks[-1] = dict(norm_placement='pre', norm_eps=1e-6)
            if not isinstance(attention, (list, tuple)):
                attentions[-1] = dict(type='SoftmaxAttention')
        sides = [-(-img_size // stem.get('stride', 4))]
        for _ in range(num_stages - 1):
            sides.append(-(-sides[-1] // merging.get('stride', 2)))
        super().__init__(
            arch,
            stem=stem,
            merging=merging,
            attention=attentions,
            block=blocks,
            pos_shapes=[(side, side) for side in sides],
            with_cls_token=with_cls_token,
            **kwargs,
        )


@MODELS.register_module()
class SOFTPlusPlus(SOFT):
    """SOFT++ (*Softmax-free Linear Transformers*, arXiv 2207.03341): SOFT
    with the normalized kernel and wider, shallower stages.

    Args:
        arch (str | dict): 'tiny', 'small', 'medium' or 'large' as in the
            paper, or a dict as :class:`SOFT` takes.
        attn_norm (bool): The normalized kernel.
        **kwargs: See :class:`SOFT`.
    """

    arch_zoo = {
        'tiny': dict(
            embed_dims=[64, 128, 256, 512], depths=[2, 2, 5, 2], num_heads=[2, 4, 8, 16]
        ),
        'small': dict(
            embed_dims=[96, 192, 384, 768],
            depths=[2, 2, 5, 2],
            num_heads=[3, 6, 12, 24],
        ),
        'medium': dict(
            embed_dims=[96, 192, 384, 768],
            depths=[2, 2, 18, 2],
            num_heads=[3, 6, 12, 24],
        ),
        'large': dict(
            embed_dims=[128, 256, 512, 1024],
            depths=[2, 2, 18, 2],
            num_heads=[4, 8, 16, 32],
        ),
    }

    def __init__(self, arch='tiny', attn_norm=True, **kwargs):
        super().__init__(arch, attn_norm=attn_norm, **kwargs)
