"""CSWin Transformer."""

from functools import partial

from mmlinattn.parts import register

from .presets import (
    ELFATT_OPTIONS,
    SOFTMAX,
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


def local(stage: Stage) -> dict:
    """Return attentions of CSWin itself: stripes widen as the map shrinks, and the last
    stage sees the whole map."""
    if stage.index > 2:
        return SOFTMAX
    width = (1, 2, stage.window_side)[stage.index]
    return dict(type='CrossShapedWindowAttention', stripe_width=width)


INLINE = dict(type='InLineAttention', lepe=True, reads_shortcut=True)


@register
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
        Others: See :class:`~.presets.PresetTransformer`.
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
        'local': Preset(local),
        'global': Preset(softmax),
        'elfatt': Preset(elfatt, options=ELFATT_OPTIONS),
        'efficient': Preset(efficient),
        # arXiv 2312.08874, 2308.00442 and 2412.06590
        'agent': Preset(leading(agents, local)),
        'flatten': Preset(leading(partial(focused, lepe=True), local)),
        'inline': Preset(leading(lambda stage: INLINE, local)),
    }
