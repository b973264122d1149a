"""DeiT."""

from torch import Tensor

from .blocks import MM_FFN, TIMM_BLOCK, is_mm, scaling_rows
from .rows import LINEAR, NORM, Keys, Row, StateDict, count_blocks, nested

MM_DEIT_BLOCK = (
    Row('norm1', 'ln1', NORM),
    Row('attn.qkv', 'attn.qkv', LINEAR),
    Row('attn.proj', 'attn.proj', LINEAR),
    Row('norm2', 'ln2', NORM),
) + MM_FFN


def added_twice(vector: Tensor) -> Tensor:
    """A FeatScale vector of the official DeiT, which adds the scaled parts twice."""
    return 2 * vector


def deit_rows(keys: Keys) -> list[Row]:
    """Rows of DeiT.

    Raises:
        ValueError: If the model is a distilled one.
    """
    if 'dist_token' in keys:
        raise ValueError(
            'distilled models (dist_token, head_dist) are not supported, since '
            'VisionTransformer has no distillation token: take one trained without'
        )
    if is_mm(keys):
        embedding, blocks, norm = 'patch_embed.projection', 'layers', 'ln1'
        block = MM_DEIT_BLOCK
    else:
        embedding, blocks, norm = 'patch_embed.proj', 'blocks', 'norm'
        block = TIMM_BLOCK + scaling_rows(keys, added_twice)
    depth = count_blocks(keys, f'{blocks}.')
    rows = [
        Row('cls_token', 'cls_token'),
        Row('pos_embed.table', 'pos_embed'),
        Row('patch_embed.layer.0', embedding, LINEAR),
        Row(f'norm{depth - 1}', norm, NORM),
    ]
    for i in range(depth):
        rows += nested(f'blocks.{i}.', f'{blocks}.{i}.', block)
    return rows


def deit_arch(ours: StateDict) -> dict:
    """Width and depth; the heads leave no trace."""
    return dict(
        embed_dims=ours['cls_token'].size(-1), num_layers=count_blocks(ours, 'blocks.')
    )
