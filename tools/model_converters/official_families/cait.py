"""CaiT."""

from .blocks import TIMM_BLOCK, scaling_rows
from .rows import LINEAR, NORM, Keys, Row, StateDict, count_blocks, nested

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
    + (Row('attn.q', 'attn.q', LINEAR), Row('attn.kv', 'attn.k + attn.v', LINEAR))
)


def cait_rows(keys: Keys) -> list[Row]:
    """Rows of CaiT; its class layers have no scaling vectors."""
    depth = count_blocks(keys, 'blocks.')
    rows = [
        Row('class_layers.cls_token', 'cls_token'),
        Row('pos_embed.table', 'pos_embed'),
        Row('patch_embed.layer.0', 'patch_embed.proj', LINEAR),
        Row(f'norm{depth - 1}', 'norm', NORM),
    ]
    for i in range(depth):
        rows += nested(f'blocks.{i}.', f'blocks.{i}.', CAIT_BLOCK + scaling_rows(keys))
    for i in range(count_blocks(keys, 'blocks_token_only.')):
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
