"""SOFT and SOFT++."""

from ..rows import (
    BATCH_NORM,
    LINEAR,
    NORM,
    WEIGHT,
    Keys,
    Row,
    StateDict,
    count_blocks,
    nested,
)
from .layout import Layout

SOFT_STEM = (
    Row('0.0', '0', LINEAR),
    Row('0.1', '1', BATCH_NORM),
    Row('1.0', '3', LINEAR),
    Row('1.1', '4', BATCH_NORM),
    Row('2.0', '6', LINEAR),
    Row('2.1', '7', BATCH_NORM),
)
SOFT_MERGING = (Row('layer.0', '0', LINEAR), Row('layer.1', '1', BATCH_NORM))
SOFT_BLOCK = (
    Row('attn.q', 'att.mha.W_q', LINEAR),
    Row('attn.v', 'att.mha.W_v', LINEAR),
    Row('attn.sampler.conv', 'att.mha.attn.Qlandmark_op', WEIGHT),
    Row('attn.sampler.norm', 'att.mha.attn.Qnorm_act.0', NORM),
    Row('attn.local_conv', 'att.mha.attn.conv', WEIGHT),
    Row('attn.proj', 'att.mha.ff', LINEAR),
    Row('norm1', 'att.norm1', NORM),
    Row('ffn.layers.0.0', 'att.ff1', LINEAR),
    Row('ffn.layers.1', 'att.ff2', LINEAR),
    Row('norm2', 'att.norm2', NORM),
)
SOFT_LAST_BLOCK = (
    Row('norm1', 'norm1', NORM),
    Row('attn.qkv', 'attn.q + attn.kv', LINEAR, shares=(1, 2)),
    Row('attn.proj', 'attn.proj', LINEAR),
    Row('norm2', 'norm2', NORM),
    Row('ffn.layers.0.0', 'mlp.fc1', LINEAR),
    Row('ffn.layers.1', 'mlp.fc2', LINEAR),
)


def is_soft(keys: Keys) -> bool:
    """Whether these are a SOFT's keys."""
    return any(key.startswith('patch_embed1.proj.0.') for key in keys)


def read_soft(keys: Keys) -> Layout:
    """Layout of an official SOFT, whose stages count from 1."""
    return Layout(
        'official', tuple(count_blocks(keys, f'block{number}.') for number in '1234')
    )


def soft_rows(layout: Layout) -> list[Row]:
    """Rows of SOFT."""
    rows = [
        Row('stages.3.cls_token', 'cls_token'),
        Row('norm3', layout.last_norm, NORM),
    ]
    for i, depth in enumerate(layout.depths):
        rows.append(Row(f'stages.{i}.pos_embed.table', f'pos_embed{i + 1}'))
        rows += nested(
            f'stages.{i}.embedding.',
            f'patch_embed{i + 1}.proj.',
            SOFT_MERGING if i else SOFT_STEM,
        )
        for j in range(depth):
            rows += nested(
                f'stages.{i}.blocks.{j}.',
                f'block{i + 1}.{j}.',
                SOFT_LAST_BLOCK if i == 3 else SOFT_BLOCK,
            )
    return rows


def soft_arch(ours: StateDict) -> dict:
    """Widths and depths; the heads of the last stage leave no trace."""
    return dict(
        embed_dims=[ours[f'stages.{i}.pos_embed.table'].size(-1) for i in range(4)],
        depths=[count_blocks(ours, f'stages.{i}.blocks.') for i in range(4)],
    )
