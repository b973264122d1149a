"""CSWin Transformer."""

from typing import Optional

from mmlinattn.registry import MODELS

from .presets import (
    ELFATT_OPTIONS,
    SIZED,
    SOFTMAX,
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


def stripes(img_size: int = 224) -> list:
    """Attentions of the first three stages: stripes widen as the map shrinks."""
    return [
        dict(type='CrossShapedWindowAttention', stripe_width=width)
        for width in (1, 2, window_side(img_size))
    ]


def local(arch: Optional[str], depths: list[int], img_size: int = 224) -> list:
    """Attentions of CSWin itself; the last stage sees the whole map."""
    return repeat_last([*stripes(img_size), SOFTMAX], len(depths))


def flatten(arch: Optional[str], depths: list[int], img_size: int = 224) -> list:
    """Attentions of FLatten-CSWin (arXiv 2308.00442): focused in the first two
    stages."""
    first = focused(len(depths), img_size, lepe=True)
    return repeat_last([*first, stripes(img_size)[2], SOFTMAX], len(depths))


def agent(arch: Optional[str], depths: list[int], img_size: int = 224) -> list:
    """Attentions of Agent-CSWin (arXiv 2312.08874): agents in the first two stages."""
    first = agents(2, img_size)
    return repeat_last([*first, stripes(img_size)[2], SOFTMAX], len(depths))


def inline(arch: Optional[str], depths: list[int], img_size: int = 224) -> list:
    """Attentions of InLine-CSWin (arXiv 2412.06590): linear in the first two stages."""
    first = dict(type='InLineAttention', lepe=True, reads_shortcut=True)
    attentions = [first, first, stripes(img_size)[2], SOFTMAX]
    return repeat_last(attentions, len(depths))


@MODELS.register_module()
class CSWinTransformer(PresetTransformer):
    """CSWin Transformer (*CSWin Transformer: A General Vision Transformer
    Backbone with Cross-Shaped Windows*, arXiv 2107.00652) with any attention.

    Its stem and merging are overlapping convolutions with LayerNorm.

    Args:
        arch (str | dict): 'tiny', 'small', 'base' and 'large' are CSWin's own;
            't24181', 's36292' and 'b36292' those of agent and InLine attention, the
            first and the last also of FLatten and the ELFATT paper; or a dict, see
            :class:`~.presets.PresetTransformer`.
        attention (str | dict | list): A paper's whole model by name: 'local',
            CSWin itself, with cross-shaped windows; 'global', softmax
            attention; 'elfatt'; 'efficient'; 'agent'; 'flatten'; 'inline'. Or
            configs, see :class:`~.presets.PresetTransformer`.
        **kwargs: See :class:`~.presets.PresetTransformer`.
    """

    arch_zoo = {
        'tiny': dict(embed_dims=64, depths=[1, 2, 21, 1], num_heads=[2, 4, 8, 16]),
        'small': dict(embed_dims=64, depths=[2, 4, 32, 2], num_heads=[2, 4, 8, 16]),
        'base': dict(embed_dims=96, depths=[2, 4, 32, 2], num_heads=[4, 8, 16, 32]),
        'large': dict(embed_dims=144, depths=[2, 4, 32, 2], num_heads=[6, 12, 24, 24]),
        't24181': dict(embed_dims=64, depths=[2, 4, 18, 1], num_heads=[2, 4, 8, 16]),
        's36292': dict(embed_dims=64, depths=[3, 6, 29, 2], num_heads=[2, 4, 8, 16]),
        'b36292': dict(embed_dims=96, depths=[3, 6, 29, 2], num_heads=[4, 8, 16, 32]),
    }
    presets = {
        'local': Preset(local, options=SIZED),
        'global': Preset(softmax),
        'elfatt': Preset(elfatt, options=ELFATT_OPTIONS),
        'efficient': Preset(efficient),
        'agent': Preset(agent, options=SIZED),
        'flatten': Preset(flatten, options=SIZED),
        'inline': Preset(inline, options=SIZED),
    }
