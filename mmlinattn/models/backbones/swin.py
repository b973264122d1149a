"""Swin Transformer."""
from mmlinattn.registry import MODELS
from .base import resolve_arch
from .pyramid import PyramidTransformer

LAYER_NORM = dict(type='LN', eps=1e-5)
WINDOW_SIZE = 7

# every other block shifts its windows by half a window
SHIFTED_WINDOWS = [
    dict(type='WindowAttention', window_size=WINDOW_SIZE),
    dict(
        type='WindowAttention',
        window_size=WINDOW_SIZE,
        shift_size=WINDOW_SIZE // 2),
]
PATCH_EMBED = dict(
    type='ConvEmbedding',
    kernel_size=4,
    stride=4,
    norm_cfg=LAYER_NORM,
    act_cfg=None)
PATCH_MERGING = dict(type='PatchMerging', norm_cfg=LAYER_NORM)


@MODELS.register_module()
class SwinTransformer(PyramidTransformer):
    """Swin Transformer (*Swin Transformer: Hierarchical Vision Transformer
    using Shifted Windows*, arXiv 2103.14030) with any attention.

    Args:
        arch (str | dict): 'tiny', 'small', 'base', or a dict with
            ``embed_dims``, an integer that doubles from stage to stage or
            a list, ``depths`` and ``num_heads``.
        attention (str | dict | list): 'local', Swin's shifted windows; or
            the config of an attention, or a list with one per stage, whose
            entries may be lists, patterns over the stage's blocks.
        patch_embed (dict): Config of the first embedding.
        merging (dict): Config of the embeddings between stages.
        **kwargs: See :class:`~.pyramid.PyramidTransformer`.

    Raises:
        ValueError: If ``arch`` or ``attention`` is unknown.
    """

    arch_zoo = {
        'tiny':
        dict(embed_dims=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24]),
        'small':
        dict(embed_dims=96, depths=[2, 2, 18, 2], num_heads=[3, 6, 12, 24]),
        'base':
        dict(embed_dims=128, depths=[2, 2, 18, 2], num_heads=[4, 8, 16, 32]),
    }
    presets = {'local': dict(attention=SHIFTED_WINDOWS)}

    def __init__(self,
                 arch='tiny',
                 attention='local',
                 patch_embed=PATCH_EMBED,
                 merging=PATCH_MERGING,
                 **kwargs):
        arch = dict(
            resolve_arch(arch, self.arch_zoo,
                         ('embed_dims', 'depths', 'num_heads')))
        if isinstance(arch['embed_dims'], int):
            arch['embed_dims'] = [
                arch['embed_dims'] * 2**i for i in range(len(arch['depths']))
            ]
        if isinstance(attention, str):
            if attention not in self.presets:
                raise ValueError(
                    f'attention must be one of {sorted(self.presets)}, a '
                    f'config or a list of configs, got {attention!r}')
            attention = self.presets[attention]['attention']
            attention = [attention] * len(arch['depths'])
        super().__init__(
            arch,
            stem=patch_embed,
            merging=merging,
            attention=attention,
            block=dict(norm_eps=1e-5),
            norm_eps=1e-5,
            out_norm='all',
            **kwargs)
