"""Rows and sizes that several families have in common."""

from typing import Callable

from torch import Tensor

from ..rows import LINEAR, NORM, Keys, Row, StateDict, count_blocks, unchanged
from .layout import Layout

TIMM_BLOCK = (
    Row('norm1', 'norm1', NORM),
    Row('attn.qkv', 'attn.qkv', LINEAR),
    Row('attn.proj', 'attn.proj', LINEAR),
    Row('norm2', 'norm2', NORM),
    Row('ffn.layers.0.0', 'mlp.fc1', LINEAR),
    Row('ffn.layers.1', 'mlp.fc2', LINEAR),
)
MM_FFN = (
    Row('ffn.layers.0.0', 'ffn.layers.0.0', LINEAR),
    Row('ffn.layers.1', 'ffn.layers.1', LINEAR),
)


def scaling_rows(
    layout: Layout,
    change: Callable[[Tensor], Tensor] = unchanged,
    undo: Callable[[Tensor], Tensor] = unchanged,
) -> tuple[Row, ...]:
    """Rows of a block's AttnScale and FeatScale vectors, if the model has them.

    Args:
        layout: Layout of the backbone.
        change: From an official FeatScale vector to ours.
        undo: The way back.
    """
    rows = ()
    if 'attn_scale' in layout.scales:
        rows += (Row('attn.omega', 'attn.lamb'),)
    if 'feat_scale' in layout.scales:
        rows += (
            Row('feat_scale.dc_scale', 'lamb1', change=change, undo=undo),
            Row('feat_scale.hc_scale', 'lamb2', change=change, undo=undo),
        )
    return rows


def is_mm(keys: Keys) -> bool:
    """Whether a backbone's modules have OpenMMLab's names."""
    return any(key.startswith('patch_embed.projection.') for key in keys)


def pyramid_arch(ours: StateDict) -> dict:
    """Width and depths of a pyramid whose width doubles; heads leave no trace."""
    return dict(
        embed_dims=len(ours['stages.0.embedding.layer.0.bias']),
        depths=[
            count_blocks(ours, f'stages.{i}.blocks.')
            for i in range(count_blocks(ours, 'stages.'))
        ],
    )
