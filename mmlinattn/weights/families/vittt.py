"""ViT^3: classifiers."""

from mmlinattn.utils.names import count_blocks

from ..rows import LINEAR, NORM, Keys, Row, modules, nested
from .layout import BLOCK, Family, Layout

VITTT_BLOCK = (
    *modules({'cpe1': 'cpe', **BLOCK}),
    *(Row(f'attn.{name}', f'attn.{name}') for name in ('w1', 'w2', 'w3')),
)


def read_vittt(keys: Keys) -> Layout:
    """Return the layout of an official ViT^3."""
    return Layout('official', (count_blocks(keys, 'blocks.'),))


def vittt_rows(layout: Layout) -> list[Row]:
    """Return rows of ViT^3."""
    (depth,) = layout.depths
    rows = [
        Row('patch_embed.layer.0', 'patch_embed.proj', LINEAR),
        Row(f'norm{depth - 1}', layout.last_norm, NORM),
    ]
    for i in range(depth):
        rows += nested(f'blocks.{i}.', f'blocks.{i}.', VITTT_BLOCK)
    return rows


FAMILY = Family(
    name='vittt',
    title='ViT^3',
    code='LeapLabTHU/ViTTT',
    marks=(r'blocks\.0\.attn\.w1$', r'patch_embed\.proj\.weight$'),
    read=read_vittt,
    rows=vittt_rows,
    attentions=('TTTAttention',),
)
