"""Swin."""

from torch import Tensor

from .blocks import MM_FFN, TIMM_BLOCK, is_mm, pyramid_arch, scaling_rows
from .rows import LINEAR, NORM, WEIGHT, Keys, Row, StateDict, count_blocks, nested

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
    """Sorts the inputs of OpenMMLab's merging, (..., 4 * C), as the official one's.

    The four pixels of a channel are neighbours there, in raster order; here all
    channels of a pixel are, and pixels are in column order.
    """
    return tensor.unflatten(-1, (-1, 2, 2)).transpose(-3, -1).flatten(-3)


MM_SWIN_MERGING = tuple(row._replace(change=from_unfold) for row in SWIN_MERGING)


def swin_rows(keys: Keys) -> list[Row]:
    """Rows of Swin; OpenMMLab's detectors norm the earlier maps too."""
    if is_mm(keys):
        embedding, stages, norm = 'patch_embed.projection', 'stages', 'norm{}'
        block, merging = MM_SWIN_BLOCK, MM_SWIN_MERGING
    else:
        embedding, stages, norm = 'patch_embed.proj', 'layers', 'norm'
        block, merging = SWIN_BLOCK + scaling_rows(keys), SWIN_MERGING
    last = count_blocks(keys, f'{stages}.') - 1
    # a merging ends its stage; from timm 0.9 on it begins the next one
    ends_stage = any(key.startswith(f'{stages}.0.downsample.') for key in keys)
    rows = [
        Row('stages.0.embedding.layer.0', embedding, LINEAR),
        Row('stages.0.embedding.layer.1', 'patch_embed.norm', NORM),
        Row(f'norm{last}', norm.format(last), NORM),
    ]
    for i in range(last + 1):
        if i < last and f'norm{i}.weight' in keys:
            rows.append(Row(f'norm{i}', f'norm{i}', NORM))
        if i:
            rows += nested(
                f'stages.{i}.embedding.',
                f'{stages}.{i - ends_stage}.downsample.',
                merging,
            )
        for j in range(count_blocks(keys, f'{stages}.{i}.blocks.')):
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
