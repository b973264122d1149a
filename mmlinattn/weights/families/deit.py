"""DeiT."""

from torch import Tensor

from ..rows import LINEAR, NORM, Keys, Row, StateDict, count_blocks, nested
from .blocks import MM_FFN, TIMM_BLOCK, is_mm, scaling_rows
from .layout import Layout, find_scales

MM_DEIT_BLOCK = (
    Row('norm1', 'ln1', NORM),
    Row('attn.qkv', 'attn.qkv', LINEAR),
    Row('attn.proj', 'attn.proj', LINEAR),
    Row('norm2', 'ln2', NORM),
) + MM_FFN


def added_twice(vector: Tensor) -> Tensor:
    """A FeatScale vector of the official DeiT, which adds the scaled parts twice."""
    return 2 * vector


def halved(vector: Tensor) -> Tensor:
    """The way back from :func:`added_twice`."""
    return vector / 2


def is_deit(keys: Keys) -> bool:
    """Whether these are a DeiT's keys; CaiT has them too, and others."""
    blocks = ('blocks.0.attn.qkv.weight', 'layers.0.ln1.weight')
    return {'cls_token', 'pos_embed'} <= set(keys) and any(x in keys for x in blocks)


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
    """Rows of DeiT."""
    if layout.style == 'mm':
        embedding, blocks = 'patch_embed.projection', 'layers'
        block = MM_DEIT_BLOCK
    else:
        embedding, blocks = 'patch_embed.proj', 'blocks'
        block = TIMM_BLOCK + scaling_rows(layout, added_twice, halved)
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


def deit_arch(ours: StateDict) -> dict:
    """Width and depth; the heads leave no trace."""
    return dict(
        embed_dims=ours['cls_token'].size(-1), num_layers=count_blocks(ours, 'blocks.')
    )
