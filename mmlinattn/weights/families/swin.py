"""Swin."""

from torch import Tensor

from ..rows import LINEAR, NORM, WEIGHT, Keys, Row, StateDict, count_blocks, nested
from .blocks import MM_FFN, TIMM_BLOCK, is_mm, pyramid_arch, scaling_rows
from .layout import Layout, find_norms, find_scales, our_pyramid

SWIN_BLOCK = TIMM_BLOCK + (
    Row('attn.relative_position_bias_table', 'attn.relative_position_bias_table'),
)
SWIN_MERGING = (Row('norm', 'norm', NORM), Row('reduction', 'reduction', WEIGHT))
MM_SWIN_BLOCK = (
    Row('norm1', 'norm1', NORM),
    Row('attn.relative_position_bias_table', 'attn.w_msa.relative_position_bias_table'),
    Row('attn.qkv', 'attn.w_msa.qkv', LINEAR),
    Row('attn.proj', 'attn.w_msa.proj', LINEAR),
    Row('norm2', 'norm2', NORM),
) + MM_FFN


def from_unfold(tensor: Tensor) -> Tensor:
    """Sorts the inputs of OpenMMLab's merging, (..., 4 * C), in the official order.

    In OpenMMLab's order, the four pixels of a channel are neighbors, in raster order.
    In the official order, all channels of a pixel are, and pixels are in column order.
    """
    return tensor.unflatten(-1, (-1, 2, 2)).transpose(-3, -1).flatten(-3)


def to_unfold(tensor: Tensor) -> Tensor:
    """The way back from :func:`from_unfold`."""
    return tensor.unflatten(-1, (2, 2, -1)).transpose(-3, -1).flatten(-3)


MM_SWIN_MERGING = tuple(
    row._replace(change=from_unfold, undo=to_unfold) for row in SWIN_MERGING
)


def is_swin(keys: Keys) -> bool:
    """Whether these are a Swin's keys, of any of the code bases."""
    table = 'relative_position_bias_table'
    first = {f'layers.0.blocks.0.attn.{table}', f'stages.0.blocks.0.attn.w_msa.{table}'}
    return not first.isdisjoint(keys)


def read_swin(keys: Keys) -> Layout:
    """Layout of a Swin of any of the code bases.

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
    names = [f'norm{i}' for i in range(number)]
    numbered = style == 'mm' or f'{names[-1]}.weight' in keys
    return Layout(
        style,
        tuple(count_blocks(keys, f'{stages}.{i}.blocks.') for i in range(number)),
        names[-1] if numbered else 'norm',
        find_norms(keys, names[:-1]),
        find_scales(keys, official=True),
    )


def our_swin(keys: Keys) -> Layout:
    """Official layout of one of our Swins."""
    layout = our_pyramid(keys)
    last_norm = f'norm{len(layout.depths) - 1}'
    return layout._replace(last_norm=last_norm) if layout.norms else layout


def swin_rows(layout: Layout) -> list[Row]:
    """Rows of Swin."""
    embedding, stages = 'patch_embed.proj', 'layers'
    block, merging = SWIN_BLOCK + scaling_rows(layout), SWIN_MERGING
    if layout.style == 'mm':
        embedding, stages = 'patch_embed.projection', 'stages'
        block, merging = MM_SWIN_BLOCK, MM_SWIN_MERGING
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
            rows += nested(f'stages.{inner}', f'{stages}.{inner}', block)
    return rows


def swin_arch(ours: StateDict) -> dict:
    """The whole architecture."""
    arch = pyramid_arch(ours)
    tables = [
        ours[f'stages.{i}.blocks.0.attn.relative_position_bias_table']
        for i in range(len(arch['depths']))
    ]
    return dict(arch, num_heads=[table.size(1) for table in tables])
