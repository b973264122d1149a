"""CSWin: classifiers and the backbone of segmentors."""

from ..rows import LINEAR, NORM, Keys, Row, count_blocks, nested
from .layout import Layout, find_norms, our_pyramid

CSWIN_STEM = (Row('layer.0', '0', LINEAR), Row('layer.1', '2', NORM))
CSWIN_MERGING = (Row('layer.0', 'conv', LINEAR), Row('layer.1', 'norm', NORM))
CSWIN_BLOCK = (
    Row('norm1', 'norm1', NORM),
    Row('attn.qkv', 'qkv', LINEAR),
    Row('attn.proj', 'proj', LINEAR),
    Row('norm2', 'norm2', NORM),
    Row('ffn.layers.0.0', 'mlp.fc1', LINEAR),
    Row('ffn.layers.1', 'mlp.fc2', LINEAR),
)
# LePE: of upright stripes, the first half of the channels, and of flat ones
CSWIN_STRIPES = (
    Row('attn.lepe.0', 'attns.0.get_v', LINEAR),
    Row('attn.lepe.1', 'attns.1.get_v', LINEAR),
)
# the last stage attends to the whole map
CSWIN_WHOLE_MAP = (Row('attn.lepe', 'attns.0.get_v', LINEAR),)


def is_cswin(keys: Keys) -> bool:
    """Whether these are a CSWin's keys."""
    return any(key.startswith('stage1_conv_embed.') for key in keys)


def read_cswin(keys: Keys) -> Layout:
    """Layout of an official CSWin.

    Segmentors norm every map, norm1 to norm4; classifiers the last one, norm.
    """
    return Layout(
        'official',
        tuple(count_blocks(keys, f'stage{i + 1}.') for i in range(4)),
        'norm4' if 'norm4.weight' in keys else 'norm',
        find_norms(keys, ('norm1', 'norm2', 'norm3')),
    )


def our_cswin(keys: Keys) -> Layout:
    """Official layout of one of our CSWins."""
    layout = our_pyramid(keys)
    return layout._replace(last_norm='norm4') if layout.norms else layout


def cswin_rows(layout: Layout) -> list[Row]:
    """Rows of CSWin, whose official stages count from 1."""
    rows = [Row('norm3', layout.last_norm, NORM)]
    rows += [Row(f'norm{i}', f'norm{i + 1}', NORM) for i in layout.norms]
    for i, depth in enumerate(layout.depths):
        rows += nested(
            f'stages.{i}.embedding.',
            f'merge{i}.' if i else 'stage1_conv_embed.',
            CSWIN_MERGING if i else CSWIN_STEM,
        )
        lepe = CSWIN_WHOLE_MAP if i == 3 else CSWIN_STRIPES
        for j in range(depth):
            rows += nested(
                f'stages.{i}.blocks.{j}.', f'stage{i + 1}.{j}.', CSWIN_BLOCK + lepe
            )
    return rows
