"""Swin Transformer."""

from functools import partial
from typing import Union

from mmlinattn.parts import register

from .presets import (
    ELFATT_OPTIONS,
    LAYER_NORM,
    Preset,
    PresetTransformer,
    Stage,
    agents,
    efficient,
    elfatt,
    focused,
    leading,
    softmax,
)

PATCH_EMBED = dict(
    type='ConvEmbedding', kernel_size=4, stride=4, norm_cfg=LAYER_NORM, act_cfg=None
)
PATCH_MERGING = dict(type='PatchMerging', norm_cfg=LAYER_NORM)


def windows(stage: Stage) -> list:
    """Return attentions of Swin itself, of two blocks: the second one's windows are
    shifted by half of one."""
    window = dict(
        type='WindowAttention',
        window_size=stage.window_side,
        pad_small_map=stage.pad_small_map,
    )
    return [window, dict(window, shift_size=stage.window_side // 2)]


# FLatten-Swin (arXiv 2308.00442) and Pola-Swin (arXiv 2501.15061)
flatten = leading(focused, windows)
polaformer = leading(partial(focused, type='PolaFormerAttention'), windows)


def linear_first(stage: Stage, linear: dict) -> Union[dict, list]:
    """Return attentions of Agent-Swin and InLine-Swin: linear in the first two stages.
    The third stage of the tiny model has them too, and so have the first two blocks of
    the base model's third stage."""
    if stage.index == 2 and stage.arch == 'base':
        return [linear] * 2 + windows(stage) * 8
    num_linear = 2 if stage.arch == 'small' else 3
    return linear if stage.index < num_linear else windows(stage)


def agent(stage: Stage, dense_agents: bool = False) -> Union[dict, list]:
    """Return attentions of Agent-Swin (arXiv 2312.08874). With ``dense_agents``, there
    are as many agents as in the paper's detectors and segmentors."""
    if stage.index > 2:
        return windows(stage)
    return linear_first(stage, agents(stage, dense_agents))


def inline(stage: Stage) -> Union[dict, list]:
    """Return attentions of InLine-Swin (arXiv 2412.06590)."""
    return linear_first(stage, dict(type='InLineAttention'))


@register
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
        Others: See :class:`~.presets.PresetTransformer`.
    """

    arch_zoo = {
        'tiny': dict(embed_dims=96, depths=[2, 2, 6, 2], num_heads=[3, 6, 12, 24]),
        'small': dict(embed_dims=96, depths=[2, 2, 18, 2], num_heads=[3, 6, 12, 24]),
        'base': dict(embed_dims=128, depths=[2, 2, 18, 2], num_heads=[4, 8, 16, 32]),
    }
    presets = {
        'local': Preset(windows, PATCH_EMBED, PATCH_MERGING),
        'global': Preset(softmax, PATCH_EMBED, PATCH_MERGING),
        'elfatt': Preset(elfatt, options=ELFATT_OPTIONS),
        'efficient': Preset(efficient, PATCH_EMBED, PATCH_MERGING),
        'agent': Preset(
            attention=agent,
            patch_embed=PATCH_EMBED,
            merging=PATCH_MERGING,
            options=('dense_agents',),
        ),
        'flatten': Preset(flatten, PATCH_EMBED, PATCH_MERGING),
        'inline': Preset(inline, PATCH_EMBED, PATCH_MERGING),
        'polaformer': Preset(polaformer, PATCH_EMBED, PATCH_MERGING),
    }
