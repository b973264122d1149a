"""CSWin Transformer."""

from mmlinattn.registry import MODELS

from .presets import (
    SOFTMAX,
    Preset,
    PresetTransformer,
    agents,
    efficient,
    elfatt,
    stages,
)

# stripes widen as the map shrinks; the last stage sees the whole map
STRIPES = [
    dict(type='CrossShapedWindowAttention', stripe_width=width) for width in (1, 2, 7)
]
FOCUSED = dict(type='FocusedLinearAttention', lepe=True)


@MODELS.register_module()
class CSWinTransformer(PresetTransformer):
    """CSWin Transformer (*CSWin Transformer: A General Vision Transformer
    Backbone with Cross-Shaped Windows*, arXiv 2107.00652) with any attention.

    Its stem and merging are overlapping convolutions with LayerNorm.

    Args:
        arch (str | dict): 'tiny', 'small', 'base' and 'large' are CSWin's own;
            't24181' and 'b36292' those of the ELFATT paper; or a dict as
            :class:`~.presets.PresetTransformer` takes.
        attention (str | dict | list): A paper's whole model by name: 'local',
            CSWin itself, with cross-shaped windows; 'global', softmax
            attention; 'elfatt'; 'efficient'; 'agent'; 'flatten'. Or configs,
            as :class:`~.presets.PresetTransformer` takes.
        **kwargs: See :class:`~.presets.PresetTransformer`: ``patch_embed``,
            ``merging``, ``block_sizes``, ``split_ratio``, ``lepe``, and what
            all pyramids share.

    Raises:
        ValueError: If ``arch`` or ``attention`` is unknown, or options of
            'elfatt' come without it.
    """

    arch_zoo = {
        'tiny': dict(embed_dims=64, depths=[1, 2, 21, 1], num_heads=[2, 4, 8, 16]),
        'small': dict(embed_dims=64, depths=[2, 4, 32, 2], num_heads=[2, 4, 8, 16]),
        'base': dict(embed_dims=96, depths=[2, 4, 32, 2], num_heads=[4, 8, 16, 32]),
        'large': dict(embed_dims=144, depths=[2, 4, 32, 2], num_heads=[6, 12, 24, 24]),
        't24181': dict(embed_dims=64, depths=[2, 4, 18, 1], num_heads=[2, 4, 8, 16]),
        'b36292': dict(embed_dims=96, depths=[3, 6, 29, 2], num_heads=[4, 8, 16, 32]),
    }
    presets = {
        'local': Preset(stages(*STRIPES, SOFTMAX)),
        'global': Preset(stages(SOFTMAX)),
        'elfatt': Preset(elfatt),
        'efficient': Preset(efficient),
        # Agent-CSWin (arXiv 2312.08874)
        'agent': Preset(stages(agents(9, 56), agents(16, 28), STRIPES[2], SOFTMAX)),
        # FLatten-CSWin (arXiv 2308.00442)
        'flatten': Preset(stages(FOCUSED, FOCUSED, STRIPES[2], SOFTMAX)),
    }

    def __init__(self, arch='tiny', attention='local', **kwargs):
        super().__init__(arch, attention, **kwargs)
