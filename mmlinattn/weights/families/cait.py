"""CaiT."""

from mmlinattn.utils.names import count_blocks

from ..rows import LINEAR, NORM, Keys, Row, modules, nested
from .layout import BLOCK, Family, Layout, find_scales, scaling_rows

LAYER_SCALES = (Row('scale1.weight', 'gamma_1'), Row('scale2.weight', 'gamma_2'))
CAIT_BLOCK = LAYER_SCALES + modules(
    {**BLOCK, 'attn.mix_logits': 'attn.proj_l', 'attn.mix_weights': 'attn.proj_w'}
)
CAIT_CLASS_BLOCK = LAYER_SCALES + (
    *(row for row in modules(BLOCK) if row.ours != 'attn.qkv'),
    Row('attn.q', 'attn.q', LINEAR),
    Row('attn.kv', 'attn.k + attn.v', LINEAR, shares=(1, 1)),
)


def read_cait(keys: Keys) -> Layout:
    """Return the layout of an official CaiT, or timm's."""
    return Layout(
        'official',
        (count_blocks(keys, 'blocks.'), count_blocks(keys, 'blocks_token_only.')),
        scales=find_scales(keys, official=True),
    )


def cait_rows(layout: Layout) -> list[Row]:
    """Return rows of CaiT; its class layers have no scaling vectors.

    Raises:
        ValueError: If there are no class layers, as in one of our models for maps.
    """
    if len(layout.depths) != 2:
        raise ValueError(
            "the class layers are missing: a model with out_type='featmap' has none"
        )
    depth, class_depth = layout.depths
    rows = [
        Row('class_layers.cls_token', 'cls_token'),
        Row('pos_embed.table', 'pos_embed'),
        Row('patch_embed.layer.0', 'patch_embed.proj', LINEAR),
        Row(f'norm{depth - 1}', layout.last_norm, NORM),
    ]
    block = CAIT_BLOCK + scaling_rows(layout)
    for i in range(depth):
        rows += nested(f'blocks.{i}.', f'blocks.{i}.', block)
    for i in range(class_depth):
        rows += nested(
            f'class_layers.blocks.{i}.', f'blocks_token_only.{i}.', CAIT_CLASS_BLOCK
        )
    return rows


FAMILY = Family(
    name='cait',
    title='CaiT',
    code='ViT-Anti-Oversmoothing, CaiT or timm',
    marks=(
        r'blocks_token_only\.',
        r'cls_token$',
        r'pos_embed$',
        r'blocks\.0\.attn\.qkv\.',
    ),
    read=read_cait,
    rows=cait_rows,
    attentions=('TalkingHeadsAttention', 'ClassAttention'),
)
