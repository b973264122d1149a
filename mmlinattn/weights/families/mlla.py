"""MLLA: classifiers, and the backbone of detectors and segmentors."""

from ..rows import BATCH_NORM, NORM, WEIGHT, Keys, Row, count_blocks, modules, nested
from .layout import Family, Layout, find_norms


def conv_and_norm(ours: str, official: str) -> tuple[Row, Row]:
    """Rows of a convolution without bias and its norm."""
    return (
        Row(f'{ours}.0', f'{official}.conv', WEIGHT),
        Row(f'{ours}.1', f'{official}.norm', BATCH_NORM),
    )


MLLA_STEM = (
    *conv_and_norm('first', 'conv1'),
    *conv_and_norm('block.0', 'conv2.0'),
    *conv_and_norm('block.1', 'conv2.1'),
    *conv_and_norm('last.0', 'conv3.0'),
    *conv_and_norm('last.1', 'conv3.1'),
)
MLLA_MERGING = (
    *modules({f'{i}.0': f'{i}.conv' for i in range(3)}),
    Row('2.1', '2.norm', BATCH_NORM),
)
MLLA_BLOCK = modules(
    {
        'cpe1': 'cpe1',
        'norm1': 'norm1',
        'attn.in_proj': 'in_proj',
        'attn.gate': 'act_proj',
        'attn.conv': 'dwc',
        'attn.qk': 'attn.qk',
        'attn.lepe': 'attn.lepe',
        'attn.proj': 'out_proj',
        'cpe2': 'cpe2',
        'norm2': 'norm2',
        'ffn.layers.0.0': 'mlp.fc1',
        'ffn.layers.1': 'mlp.fc2',
    }
)


def read_mlla(keys: Keys) -> Layout:
    """Layout of an official MLLA.

    Detectors and segmentors norm every map, norm0 to norm3; classifiers the last one.
    """
    number = count_blocks(keys, 'layers.')
    depths = tuple(count_blocks(keys, f'layers.{i}.blocks.') for i in range(number))
    return Layout('official', depths, *find_norms(keys, number))


def mlla_rows(layout: Layout) -> list[Row]:
    """Rows of MLLA."""
    last = len(layout.depths) - 1
    rows = nested('stages.0.embedding.', 'patch_embed.', MLLA_STEM)
    rows += [Row(f'norm{i}', f'norm{i}', NORM) for i in layout.norms]
    rows.append(Row(f'norm{last}', layout.last_norm, NORM))
    for i, depth in enumerate(layout.depths):
        if i:
            merging = f'layers.{i - 1}.downsample.conv.'
            rows += nested(f'stages.{i}.embedding.', merging, MLLA_MERGING)
        for j in range(depth):
            inner = f'{i}.blocks.{j}.'
            rows += nested(f'stages.{inner}', f'layers.{inner}', MLLA_BLOCK)
    return rows


FAMILY = Family(
    'mlla',
    'MLLA',
    'LeapLabTHU/MLLA',
    (r'layers\.0\.blocks\.0\.act_proj\.',),
    read_mlla,
    mlla_rows,
    ('MLLAAttention',),
    buffers=('rotations',),
)
