"""Swin."""

from torch import Tensor

from mmlinattn.utils.names import count_blocks

from ..rows import LINEAR, NORM, WEIGHT, Keys, Row, modules, nested
from .layout import (
    BLOCK,
    MM_FFN,
    Family,
    Layout,
    find_norms,
    find_scales,
    is_mm,
    scaling_rows,
)

TABLE = 'attn.relative_position_bias_table'
MM_ATTENTION = {'attn.qkv': 'attn.w_msa.qkv', 'attn.proj': 'attn.w_msa.proj'}
SWIN_BLOCK = (*modules(BLOCK), Row(TABLE, TABLE))
SWIN_MERGING = (Row('norm', 'norm', NORM), Row('reduction', 'reduction', WEIGHT))
MM_SWIN_BLOCK = (
    *modules({**BLOCK, **MM_ATTENTION, **MM_FFN}),
    Row(TABLE, 'attn.w_msa.relative_position_bias_table'),
)


def from_unfold(tensor: Tensor) -> Tensor:
    """Sort the inputs of OpenMMLab's merging, (..., 4 * C), in the official order.

    In OpenMMLab's order, the four pixels of a channel are neighbors, in raster order.
    In the official order, all channels of a pixel are, and pixels are in column order.
    """
    return tensor.unflatten(-1, (-1, 2, 2)).transpose(-3, -1).flatten(-3)


def to_unfold(tensor: Tensor) -> Tensor:
    """Return the inverse of :func:`from_unfold`."""
    return tensor.unflatten(-1, (2, 2, -1)).transpose(-3, -1).flatten(-3)


MM_SWIN_MERGING = tuple(
    row._replace(change=from_unfold, undo=to_unfold) for row in SWIN_MERGING
)


def read_swin(keys: Keys) -> Layout:
    """Return the layout of a Swin of any of the code bases.

    OpenMMLab numbers the norm of the last map. A detector of any code base also has
    norms of earlier maps, and numbers all of them.
    """
    stages = 'stages' if is_mm(keys) else 'layers'
    number = count_blocks(keys, f'{stages}.')
    style = 'mm'
    if not is_mm(keys):
        # a merging ends its stage; from timm 0.9 on it begins the next one
        ends = any(key.startswith('layers.0.downsample.') for key in keys)
        style = 'official' if ends or number == 1 else 'timm'
    depths = tuple(count_blocks(keys, f'{stages}.{i}.blocks.') for i in range(number))
    scales = find_scales(keys, official=True)
    return Layout(style, depths, *find_norms(keys, number), scales)


def swin_rows(layout: Layout, own: tuple[Row, ...] = ()) -> list[Row]:
    """Return rows of Swin.

    ``own`` are rows of an attention that replaces Swin's, besides projections.
    """
    embedding, stages = 'patch_embed.proj', 'layers'
    block, merging = SWIN_BLOCK + scaling_rows(layout), SWIN_MERGING
    if layout.style == 'mm':
        embedding, stages = 'patch_embed.projection', 'stages'
        block, merging = MM_SWIN_BLOCK, MM_SWIN_MERGING
    own_block = (*modules(BLOCK), *own, *scaling_rows(layout))
    # an attention may have another name for a projection
    own_block = tuple({row.ours: row for row in own_block}.values())
    rows = [
        Row('stages.0.embedding.layer.0', embedding, LINEAR),
        Row('stages.0.embedding.layer.1', 'patch_embed.norm', NORM),
        Row(f'norm{len(layout.depths) - 1}', layout.last_norm, NORM),
    ]
    rows += [Row(f'norm{i}', f'norm{i}', NORM) for i in layout.norms]
    for i, depth in enumerate(layout.depths):
        if i:
            holder = i if layout.style == 'timm' else i - 1
            rows += nested(
                f'stages.{i}.embedding.', f'{stages}.{holder}.downsample.', merging
            )
        for j in range(depth):
            inner = f'{i}.blocks.{j}.'
            block_rows = own_block if layout.has_own(i, j) else block
            rows += nested(f'stages.{inner}', f'{stages}.{inner}', block_rows)
    return rows


FAMILY = Family(
    name='swin',
    title='Swin',
    code='ViT-Anti-Oversmoothing, Swin, timm, mmpretrain, mmdet or mmseg',
    marks=(
        r'(layers\.0\.blocks\.0\.attn|stages\.0\.blocks\.0\.attn\.w_msa)\.relative_pos',
    ),
    read=read_swin,
    rows=swin_rows,
    attentions=('WindowAttention',),
    buffers=('attn_mask', 'relative_position_index'),
)
