"""Swin Transformer."""

from typing import Optional

from mmlinattn.registry import MODELS

from .presets import (
    ELFATT_OPTIONS,
    LAYER_NORM,
    SIZED,
    Preset,
    PresetTransformer,
    agents,
    efficient,
    elfatt,
    focused,
    repeat_last,
    softmax,
    window_side,
)

PATCH_EMBED = dict(
    type='ConvEmbedding', kernel_size=4, stride=4, norm_cfg=LAYER_NORM, act_cfg=None
)
PATCH_MERGING = dict(type='PatchMerging', norm_cfg=LAYER_NORM)


def shifted_windows(img_size: int = 224) -> list:
    """Attentions of two blocks: the second one's windows are shifted by half of one."""
    side = window_side(img_size)
    return [
        dict(type='WindowAttention', window_size=side),
        dict(type='WindowAttention', window_size=side, shift_size=side // 2),
    ]


def local(arch: Optional[str], depths: list[int], img_size: int = 224) -> list:
    """Attentions of Swin itself."""
    return [shifted_windows(img_size)] * len(depths)


def flatten(arch: Optional[str], depths: list[int], img_size: int = 224) -> list:
    """Attentions of FLatten-Swin (arXiv 2308.00442): focused in the first two
    stages."""
    attentions = [*focused(len(depths), img_size), shifted_windows(img_size)]
    return repeat_last(attentions, len(depths))


def polaformer(arch: Optional[str], depths: list[int], img_size: int = 224) -> list:
    """Attentions of Pola-Swin (arXiv 2501.15061), arranged as those of FLatten-Swin."""
    first = focused(len(depths), img_size, type='PolaFormerAttention')
    return repeat_last([*first, shifted_windows(img_size)], len(depths))


def linear_first(
    arch: Optional[str], depths: list[int], attentions: list, img_size: int
) -> list:
    """Attentions of Agent-Swin and InLine-Swin.

    The first two stages have linear attentions, from the three given ones. The third
    stage of the tiny model has them too, and so have the first two blocks of the base
    model's third stage.
    """
    windows = shifted_windows(img_size)
    if arch == 'small':
        attentions[2] = windows
    elif arch == 'base':
        attentions[2] = [attentions[2]] * 2 + windows * 8
    return repeat_last([*attentions, windows], len(depths))


def agent(
    arch: Optional[str],
    depths: list[int],
    img_size: int = 224,
    dense_agents: bool = False,
) -> list:
    """Attentions of Agent-Swin (arXiv 2312.08874). With ``dense_agents``, there are
    as many agents as in the paper's detectors and segmentors."""
    return linear_first(arch, depths, agents(3, img_size, dense_agents), img_size)


def inline(arch: Optional[str], depths: list[int], img_size: int = 224) -> list:
    """Attentions of InLine-Swin (arXiv 2412.06590)."""
    return linear_first(arch, depths, [dict(type='InLineAttention')] * 3, img_size)


@MODELS.register_module()
class SwinTransformer(PresetTransformer):
    """Swin Transformer (*Swin Transformer: Hierarchical Vision Transformer
    using Shifted Windows*, arXiv 2103.14030) with any attention.

    Args:
        arch (str | dict): 'tiny', 'small', 'base', or a dict, see
            :class:`~.presets.PresetTransformer`.
        attention (str | dict | list): A paper's whole model by name: 'local',
            Swin itself, with shifted windows; 'global', softmax attention;
            'elfatt', with CSWin's embeddings; 'efficient'; 'agent'; 'flatten';
            'inline'; 'polaformer'. Or configs, see
            :class:`~.presets.PresetTransformer`.
        **kwargs: See :class:`~.presets.PresetTransformer`.
    """

    arch_zoo = {
        'tiny': dict(embed_dims=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24]),
        'small': dict(embed_dims=96, depths=[2, 2, 18, 2], num_heads=[3, 6, 12, 24]),
        'base': dict(embed_dims=128, depths=[2, 2, 18, 2], num_heads=[4, 8, 16, 32]),
    }
    presets = {
        'local': Preset(local, PATCH_EMBED, PATCH_MERGING, SIZED),
        'global': Preset(softmax, PATCH_EMBED, PATCH_MERGING),
        'elfatt': Preset(elfatt, options=ELFATT_OPTIONS),
        'efficient': Preset(efficient, PATCH_EMBED, PATCH_MERGING),
        'agent': Preset(agent, PATCH_EMBED, PATCH_MERGING, (*SIZED, 'dense_agents')),
        'flatten': Preset(flatten, PATCH_EMBED, PATCH_MERGING, SIZED),
        'inline': Preset(inline, PATCH_EMBED, PATCH_MERGING, SIZED),
        'polaformer': Preset(polaformer, PATCH_EMBED, PATCH_MERGING, SIZED),
    }
