"""CaiT."""

from ..rows import LINEAR, NORM, Keys, Row, StateDict, count_blocks, nested
from .blocks import TIMM_BLOCK, scaling_rows
from .layout import Layout, find_scales

LAYER_SCALES = (Row('scale1.weight', 'gamma_1'), Row('scale2.weight', 'gamma_2'))
CAIT_BLOCK = (
    TIMM_BLOCK
    + LAYER_SCALES
    + (
        Row('attn.mix_logits', 'attn.proj_l', LINEAR),
        Row('attn.mix_weights', 'attn.proj_w', LINEAR),
    )
)
CAIT_CLASS_BLOCK = (
    tuple(row for row in TIMM_BLOCK if row.ours != 'attn.qkv')
    + LAYER_SCALES
    + (
        Row('attn.q', 'attn.q', LINEAR),
        Row('attn.kv', 'attn.k + attn.v', LINEAR, shares=(1, 1)),
    )
)


def is_cait(keys: Keys) -> bool:
    """Whether these are a CaiT's keys."""
    return any(key.startswith('blocks_token_only.') for key in keys)


def read_cait(keys: Keys) -> Layout:
    """Layout of an official CaiT, or timm's."""
    return Layout(
        'official',
        (count_blocks(keys, 'blocks.'), count_blocks(keys, 'blocks_token_only.')),
        scales=find_scales(keys, official=True),
    )


def cait_rows(layout: Layout) -> list[Row]:
    """Rows of CaiT; its class layers have no scaling vectors.

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


def cait_arch(ours: StateDict) -> dict:
    """The whole architecture."""
    return dict(
        embed_dims=ours['class_layers.cls_token'].size(-1),
        num_layers=count_blocks(ours, 'blocks.'),
        num_heads=len(ours['blocks.0.attn.mix_logits.bias']),
        num_class_layers=count_blocks(ours, 'class_layers.blocks.'),
    )
