"""H-ViT^3: classifiers, and the backbone of detectors and segmentors."""

from ..rows import BATCH_NORM, LINEAR, NORM, Keys, Row, count_blocks, nested
from .layout import HEAD, Family, Layout, our_layout
from .mlla import MLLA_MERGING, conv_and_norm
from .vittt import VITTT_BLOCK

HVITTT_BLOCK = (*VITTT_BLOCK, Row('ffn_conv', 'mlp.dwc', LINEAR))
HVITTT_STEM = [
    row
    for i, name in enumerate(('first', 'block.0', 'block.1', 'last.0', 'last.1'))
    for row in conv_and_norm(name, f'conv.{i}')
]


def numbered_norms(keys: Keys, number: int) -> tuple[int, ...]:
    """Numbers of the maps that have a norm: all of a detector, none of a classifier."""
    return tuple(i for i in range(number) if f'norm{i}.weight' in keys)


def read_hvittt(keys: Keys) -> Layout:
    """Layout of an official H-ViT^3."""
    number = count_blocks(keys, 'layers.')
    depths = tuple(count_blocks(keys, f'layers.{i}.blocks.') for i in range(number))
    return Layout('official', depths, '', numbered_norms(keys, number))


def our_hvittt_layout(keys: Keys) -> Layout:
    """Layout of our H-ViT^3 in the official repository."""
    found = our_layout(keys)
    norms = numbered_norms(keys, len(found.depths))
    return found._replace(last_norm='', norms=norms)


def hvittt_rows(layout: Layout) -> list[Row]:
    """Rows of H-ViT^3."""
    rows = nested('stages.0.embedding.', 'patch_embed.', HVITTT_STEM)
    rows += [Row(f'norm{i}', f'norm{i}', NORM) for i in layout.norms]
    for i, depth in enumerate(layout.depths):
        if i:
            merging = f'layers.{i - 1}.downsample.conv.'
            rows += nested(f'stages.{i}.embedding.', merging, MLLA_MERGING)
        for j in range(depth):
            inner = f'{i}.blocks.{j}.'
            rows += nested(f'stages.{inner}', f'layers.{inner}', HVITTT_BLOCK)
    return rows


FAMILY = Family(
    'hvittt',
    'H-ViT^3',
    'LeapLabTHU/ViTTT',
    (r'layers\.0\.blocks\.0\.attn\.w1$',),
    read_hvittt,
    hvittt_rows,
    ('TTTAttention',),
    back=our_hvittt_layout,
    buffers=('rotations',),
    head=(Row('neck.layer.1', 'norm', BATCH_NORM), HEAD),
)
