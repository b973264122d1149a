"""Swin Transformer."""

from mmlinattn.registry import MODELS

from .presets import (
    LAYER_NORM,
    SOFTMAX,
    Preset,
    PresetTransformer,
    agents,
    efficient,
    elfatt,
    stages,
)

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

    The first two stages have agents. So has the third stage of the tiny model, and
    so have the first two blocks of the base model's third stage.
    """
    third = agents(49, 14)
    if arch == 'small':
        third = SHIFTED_WINDOWS
    elif arch == 'base':
        third = [third] * 2 + SHIFTED_WINDOWS * 8
    attentions = stages(agents(9, 56), agents(16, 28), third, SHIFTED_WINDOWS)
    return attentions(arch, depths)


@MODELS.register_module()
class SwinTransformer(PresetTransformer):
    """Swin Transformer (*Swin Transformer: Hierarchical Vision Transformer
    using Shifted Windows*, arXiv 2103.14030) with any attention.

    Args:
        arch (str | dict): 'tiny', 'small', 'base', or a dict as
            :class:`~.presets.PresetTransformer` takes.
        attention (str | dict | list): A paper's whole model by name: 'local',
            Swin itself, with shifted windows; 'global', softmax attention;
            'elfatt', with CSWin's embeddings; 'efficient'; 'agent'; 'flatten'. Or
            configs, as :class:`~.presets.PresetTransformer` takes.
        **kwargs: See :class:`~.presets.PresetTransformer`: ``patch_embed``,
            ``merging``, ``block_sizes``, ``split_ratio``, ``lepe``, and what
            all pyramids share.

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

    def __init__(self, arch='tiny', attention='local', **kwargs):
        super().__init__(arch, attention, **kwargs)
