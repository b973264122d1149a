"""H-ViT^3: classifiers, and the backbone of detectors and segmentors."""

from ..rows import BATCH_NORM, LINEAR, NORM, Keys, Row, nested
from .layout import HEAD, Family, Layout, our_layout_of_maps, read_depths, stage_rows
from .mlla import MLLA_MERGING, STEM_NAMES, conv_and_norm
from .vittt import VITTT_BLOCK

HVITTT_BLOCK = (*VITTT_BLOCK, Row('ffn_conv', 'mlp.dwc', LINEAR))
HVITTT_STEM = [
    row for i, name in enumerate(STEM_NAMES) for row in conv_and_norm(name, f'conv.{i}')
]


def read_hvittt(keys: Keys) -> Layout:
    """Return the layout of an official H-ViT^3, whose detectors norm all maps."""
    depths = read_depths(keys)
    norms = [i for i in range(len(depths)) if f'norm{i}.weight' in keys]
    return Layout(style='official', depths=depths, last_norm='', norms=tuple(norms))


def hvittt_rows(layout: Layout) -> list[Row]:
    """Return rows of H-ViT^3."""
    rows = nested('stages.0.embedding.', 'patch_embed.', HVITTT_STEM)
    rows += [Row(f'norm{i}', f'norm{i}', NORM) for i in layout.norms]
    return rows + stage_rows(
        layout.depths, 'downsample.conv.', MLLA_MERGING, HVITTT_BLOCK
    )


FAMILY = Family(
    name='hvittt',
    title='H-ViT^3',
    code='LeapLabTHU/ViTTT',
    marks=(r'layers\.0\.blocks\.0\.attn\.w1$',),
    read=read_hvittt,
    rows=hvittt_rows,
    attentions=('TTTAttention',),
    back=our_layout_of_maps,
    buffers=('rotations',),
    head=(Row('neck.layer.1', 'norm', BATCH_NORM), HEAD),
)
