"""MLLA: classifiers, and the backbone of detectors and segmentors."""

from ..rows import BATCH_NORM, NORM, WEIGHT, Keys, Row, modules, nested
from .layout import Family, Layout, find_norms, read_depths, stage_rows


def conv_and_norm(ours: str, official: str) -> tuple[Row, Row]:
    """Return rows of a convolution without bias and its norm."""
    return (
        Row(f'{ours}.0', f'{official}.conv', WEIGHT),
        Row(f'{ours}.1', f'{official}.norm', BATCH_NORM),
    )


STEM_NAMES = ('first', 'block.0', 'block.1', 'last.0', 'last.1')
MLLA_STEM = [
    row
    for name, official in zip(STEM_NAMES, ('1', '2.0', '2.1', '3.0', '3.1'))
    for row in conv_and_norm(name, f'conv{official}')
]
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
    """Return the layout of an official MLLA.

    Detectors and segmentors norm every map, norm0 to norm3; classifiers the last one.
    """
    depths = read_depths(keys)
    return Layout('official', depths, *find_norms(keys, len(depths)))


def mlla_rows(layout: Layout) -> list[Row]:
    """Return rows of MLLA."""
    last = len(layout.depths) - 1
    rows = nested('stages.0.embedding.', 'patch_embed.', MLLA_STEM)
    rows += [Row(f'norm{i}', f'norm{i}', NORM) for i in layout.norms]
    rows.append(Row(f'norm{last}', layout.last_norm, NORM))
    return rows + stage_rows(
        layout.depths, 'downsample.conv.', MLLA_MERGING, MLLA_BLOCK
    )


FAMILY = Family(
    name='mlla',
    title='MLLA',
    code='LeapLabTHU/MLLA',
    marks=(r'layers\.0\.blocks\.0\.act_proj\.',),
    read=read_mlla,
    rows=mlla_rows,
    attentions=('MLLAAttention',),
    buffers=('rotations',),
)
