"""CSWin: classifiers and the backbone of segmentors."""

from .rows import LINEAR, NORM, Keys, Row, count_blocks, nested

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


def cswin_rows(keys: Keys) -> list[Row]:
    """Rows of CSWin, whose official stages count from 1.

    Segmentors norm every map, norm1 to norm4; classifiers the last one, norm.
    """
    last_norm = 'norm4' if 'norm4.weight' in keys else 'norm'
    rows = [Row('norm3', last_norm, NORM)]
    for i in range(4):
        if i < 3 and f'norm{i + 1}.weight' in keys:
            rows.append(Row(f'norm{i}', f'norm{i + 1}', NORM))
        rows += nested(
            f'stages.{i}.embedding.',
            f'merge{i}.' if i else 'stage1_conv_embed.',
            CSWIN_MERGING if i else CSWIN_STEM,
        )
        lepe = CSWIN_WHOLE_MAP if i == 3 else CSWIN_STRIPES
        for j in range(count_blocks(keys, f'stage{i + 1}.')):
            rows += nested(
                f'stages.{i}.blocks.{j}.', f'stage{i + 1}.{j}.', CSWIN_BLOCK + lepe
            )
    return rows
