"""DeiT."""

from mmlinattn.utils.names import count_blocks

from ..rows import LINEAR, NORM, Keys, Row, modules, nested
from .layout import BLOCK, MM_FFN, Family, Layout, find_scales, is_mm, scaling_rows

MM_DEIT_BLOCK = modules({**BLOCK, 'norm1': 'ln1', 'norm2': 'ln2', **MM_FFN})


def read_deit(keys: Keys) -> Layout:
    """Layout of a DeiT of any of the code bases.

    Raises:
        ValueError: If the model is a distilled one.
    """
    if 'dist_token' in keys:
        raise ValueError(
            'distilled models (dist_token, head_dist) are not supported, since '
            'VisionTransformer has no distillation token: take one trained without'
        )
    if not is_mm(keys):
        return Layout(
            'official',
            (count_blocks(keys, 'blocks.'),),
            scales=find_scales(keys, official=True),
        )
    return Layout('mm', (count_blocks(keys, 'layers.'),), last_norm='ln1')


def deit_rows(layout: Layout) -> list[Row]:
    """Return rows of DeiT."""
    if layout.style == 'mm':
        embedding, blocks = 'patch_embed.projection', 'layers'
        block = MM_DEIT_BLOCK
    else:
        embedding, blocks = 'patch_embed.proj', 'blocks'
        # the official FeatScale adds the scaled parts twice
        block = modules(BLOCK) + scaling_rows(layout, lambda x: 2 * x, lambda x: x / 2)
    (depth,) = layout.depths
    rows = [
        Row('cls_token', 'cls_token'),
        Row('pos_embed.table', 'pos_embed'),
        Row('patch_embed.layer.0', embedding, LINEAR),
        Row(f'norm{depth - 1}', layout.last_norm, NORM),
    ]
    for i in range(depth):
        rows += nested(f'blocks.{i}.', f'{blocks}.{i}.', block)
    return rows


FAMILY = Family(
    name='deit',
    title='DeiT',
    code='ViT-Anti-Oversmoothing, DeiT, timm or mmpretrain',
    marks=(
        r'cls_token$',
        r'pos_embed$',
        r'(blocks\.0\.attn\.qkv|layers\.0\.ln1)\.weight$',
    ),
    read=read_deit,
    rows=deit_rows,
    attentions=('SoftmaxAttention',),
)
