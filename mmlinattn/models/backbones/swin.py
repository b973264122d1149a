"""Swin Transformer."""

from mmlinattn.registry import MODELS

from .base import resolve_arch
from .presets import (
    LAYER_NORM,
    SOFTMAX,
    Preset,
    agents,
    efficient,
    elfatt,
    resolve_preset,
    stages,
)
from .pyramid import ARCH_KEYS, PyramidTransformer, resolve_pyramid_arch

WINDOW_SIZE = 7

# every other block shifts its windows by half a window
SHIFTED_WINDOWS = [
    dict(type='WindowAttention', window_size=WINDOW_SIZE),
    dict(type='WindowAttention', window_size=WINDOW_SIZE, shift_size=WINDOW_SIZE // 2),
]
FOCUSED = dict(type='FocusedLinearAttention')
PATCH_EMBED = dict(
    type='ConvEmbedding', kernel_size=4, stride=4, norm_cfg=LAYER_NORM, act_cfg=None
)
PATCH_MERGING = dict(type='PatchMerging', norm_cfg=LAYER_NORM)


def agent_swin(arch, depths):
    """Attentions of Agent-Swin (arXiv 2312.08874).

    There are agents in the first two stages; in the tiny model in the third
    one too, in the base model in its first two blocks.
    """
    third = agents(49, 14)
    if arch == 'small':
        third = SHIFTED_WINDOWS
    elif arch == 'base':
        third = [third] * 2 + SHIFTED_WINDOWS * 8
    attentions = stages(agents(9, 56), agents(16, 28), third, SHIFTED_WINDOWS)
    return attentions(arch, depths)


@MODELS.register_module()
class SwinTransformer(PyramidTransformer):
    """Swin Transformer (*Swin Transformer: Hierarchical Vision Transformer
    using Shifted Windows*, arXiv 2103.14030) with any attention.

    Args:
        arch (str | dict): 'tiny', 'small', 'base', or a dict with
            ``embed_dims``, an integer that doubles from stage to stage or
            a list, ``depths`` and ``num_heads``.
        attention (str | dict | list): A paper's whole model by name: 'local',
            Swin itself, with shifted windows; 'global', softmax attention;
            'elfatt'; 'efficient'; 'agent'; 'flatten'. Or the config of an
            attention, or a list with one per stage, whose entries may be
            lists, patterns over the stage's blocks, in place of 'local'.
        patch_embed (dict, optional): Config of the first embedding. Default:
            that of the model; Swin's, but for 'elfatt', which has CSWin's.
        merging (dict, optional): Config of the embeddings between stages,
            likewise.
        block_sizes (int | Sequence[int], optional): Of 'elfatt': tokens in a
            block, for all stages but the last or for each of them. Default: 196.
        split_ratio (float, optional): Of 'elfatt': share of the channels in
            the global half. Default: 0.5.
        lepe (bool, optional): Of 'elfatt': whether there is positional
            encoding. Default: True.
        **kwargs: See :class:`~.pyramid.PyramidTransformer`.

    Raises:
        ValueError: If ``arch`` or ``attention`` is unknown, or options of
            'elfatt' come without it.
    """

    arch_zoo = {
        'tiny': dict(embed_dims=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24]),
        'small': dict(embed_dims=96, depths=[2, 2, 18, 2], num_heads=[3, 6, 12, 24]),
        'base': dict(embed_dims=128, depths=[2, 2, 18, 2], num_heads=[4, 8, 16, 32]),
    }
    presets = {
        'local': Preset(stages(SHIFTED_WINDOWS), PATCH_EMBED, PATCH_MERGING),
        'global': Preset(stages(SOFTMAX), PATCH_EMBED, PATCH_MERGING),
        'elfatt': Preset(elfatt),
        'efficient': Preset(efficient, PATCH_EMBED, PATCH_MERGING),
        'agent': Preset(agent_swin, PATCH_EMBED, PATCH_MERGING),
        # FLatten-Swin (arXiv 2308.00442)
        'flatten': Preset(
            stages(FOCUSED, FOCUSED, SHIFTED_WINDOWS), PATCH_EMBED, PATCH_MERGING
        ),
    }

    def __init__(
        self,
        arch='tiny',
        attention='local',
        patch_embed=None,
        merging=None,
        block_sizes=None,
        split_ratio=None,
        lepe=None,
        **kwargs,
    ):
        name = arch if isinstance(arch, str) else None
        arch = dict(resolve_arch(arch, self.arch_zoo, ARCH_KEYS))
        dims, depths = arch['embed_dims'], arch['depths']
        if isinstance(dims, int) and isinstance(depths, (list, tuple)):
            arch['embed_dims'] = [dims * 2**i for i in range(len(depths))]
        arch = resolve_pyramid_arch(arch, {})
        preset = resolve_preset(
            self.presets,
            attention,
            name,
            arch['depths'],
            dict(block_sizes=block_sizes, split_ratio=split_ratio, lepe=lepe),
        )
        super().__init__(
            arch,
            stem=patch_embed or preset.patch_embed,
            merging=merging or preset.merging,
            attention=preset.attention,
            block=dict(norm_eps=1e-5),
            norm_eps=1e-5,
            out_norm='all',
            **kwargs,
        )
