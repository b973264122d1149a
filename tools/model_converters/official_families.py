"""What official checkpoints hold, family by family, for convert_official.py.

A family says which of our modules is made of which official ones. Its rows follow
from the keys of a checkpoint, because code bases name the same modules differently:
`timm` stands for the names that timm and the official repositories share, `mm` for
those of OpenMMLab.
"""
import re
from typing import Callable, Collection, Dict, Iterable, List, NamedTuple, Tuple

from torch import Tensor

StateDict = Dict[str, Tensor]
Keys = Collection[str]

WHOLE = ('', )
WEIGHT = ('weight', )
LINEAR = NORM = ('weight', 'bias')
BATCH_NORM = NORM + ('running_mean', 'running_var', 'num_batches_tracked')


def unchanged(tensor: Tensor) -> Tensor:
    """The tensor itself."""
    return tensor


class Row(NamedTuple):
    """What one of our modules is made of.

    Attributes:
        ours: Its name in our model.
        official: Its name in the official one; the tensors of several, joined by
            ' + ', are stacked.
        tensors: Names of its tensors; ('', ) for a parameter without a module.
        change: From the official tensor to ours.
    """
    ours: str
    official: str
    tensors: Tuple[str, ...] = WHOLE
    change: Callable[[Tensor], Tensor] = unchanged

    def sources(self) -> Dict[str, List[str]]:
        """The official keys of each of our keys."""
        modules = self.official.split(' + ')
        return {
            f'{self.ours}.{tensor}'.strip('.'):
            [f'{module}.{tensor}'.strip('.') for module in modules]
            for tensor in self.tensors
        }


class Family(NamedTuple):
    """Models that convert alike.

    Attributes:
        rows: From the official backbone's keys to rows. They are complete, so that
            they tell what the keys lack.
        arch: From our state dict to the sizes that it shows.
        buffers: Last names of official buffers that our model computes itself.
    """
    rows: Callable[[Keys], List[Row]]
    arch: Callable[[StateDict], dict]
    buffers: Tuple[str, ...] = ()


def nested(ours: str, official: str, rows: Iterable[Row]) -> List[Row]:
    """Rows of a module as rows of the one that holds it under these prefixes."""
    return [
        row._replace(
            ours=ours + row.ours,
            official=' + '.join(official + name for name in row.official.split(' + ')))
        for row in rows
    ]


def count_blocks(keys: Keys, prefix: str) -> int:
    """Number of blocks below a prefix, at least 1: no stage is without."""
    found = (re.match(rf'{re.escape(prefix)}(\d+)\.', key) for key in keys)
    return max((int(match[1]) for match in found if match), default=0) + 1


def is_mm(keys: Keys) -> bool:
    """Whether a backbone's modules have OpenMMLab's names."""
    return any(key.startswith('patch_embed.projection.') for key in keys)


# ----------------------------------------------------------------------- soft
SOFT_STEM = (
    Row('0.0', '0', LINEAR),
    Row('0.1', '1', BATCH_NORM),
    Row('1.0', '3', LINEAR),
    Row('1.1', '4', BATCH_NORM),
    Row('2.0', '6', LINEAR),
    Row('2.1', '7', BATCH_NORM),
)
SOFT_MERGING = (
    Row('layer.0', '0', LINEAR),
    Row('layer.1', '1', BATCH_NORM),
)
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
    Row('attn.qkv', 'attn.q + attn.kv', LINEAR),
    Row('attn.proj', 'attn.proj', LINEAR),
    Row('norm2', 'norm2', NORM),
    Row('ffn.layers.0.0', 'mlp.fc1', LINEAR),
    Row('ffn.layers.1', 'mlp.fc2', LINEAR),
)


def soft_rows(keys: Keys) -> List[Row]:
    """Rows of SOFT, whose official stages count from 1."""
    rows = [Row('stages.3.cls_token', 'cls_token'), Row('norm3', 'norm', NORM)]
    for i, number in enumerate('1234'):
        rows.append(Row(f'stages.{i}.pos_embed.table', f'pos_embed{number}'))
        rows += nested(f'stages.{i}.embedding.', f'patch_embed{number}.proj.',
                       SOFT_MERGING if i else SOFT_STEM)
        for j in range(count_blocks(keys, f'block{number}.')):
            rows += nested(f'stages.{i}.blocks.{j}.', f'block{number}.{j}.',
                           SOFT_LAST_BLOCK if i == 3 else SOFT_BLOCK)
    return rows


def soft_arch(ours: StateDict) -> dict:
    """Widths and depths; the heads of the last stage leave no trace."""
    return dict(
        embed_dims=[ours[f'stages.{i}.pos_embed.table'].size(-1) for i in range(4)],
        depths=[count_blocks(ours, f'stages.{i}.blocks.') for i in range(4)])


# ------------------------------------------------- deit, cait, swin: in common
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


def scaling_rows(keys: Keys,
                 change: Callable[[Tensor], Tensor] = unchanged) -> Tuple[Row, ...]:
    """Rows of a block's AttnScale and FeatScale vectors, if the model has them.

    Args:
        keys: Official names of the whole backbone.
        change: From an official FeatScale vector to ours.
    """
    last_names = {key.rpartition('.')[2] for key in keys}
    rows = ()
    if 'lamb' in last_names:
        rows += (Row('attn.omega', 'attn.lamb'), )
    if last_names & {'lamb1', 'lamb2'}:
        rows += (Row('feat_scale.dc_scale', 'lamb1', change=change),
                 Row('feat_scale.hc_scale', 'lamb2', change=change))
    return rows


# ----------------------------------------------------------------------- deit
MM_DEIT_BLOCK = (
    Row('norm1', 'ln1', NORM),
    Row('attn.qkv', 'attn.qkv', LINEAR),
    Row('attn.proj', 'attn.proj', LINEAR),
    Row('norm2', 'ln2', NORM),
) + MM_FFN


def added_twice(vector: Tensor) -> Tensor:
    """A FeatScale vector of the official DeiT, which adds the scaled parts twice."""
    return 2 * vector


def deit_rows(keys: Keys) -> List[Row]:
    """Rows of DeiT.

    Raises:
        ValueError: If the model is a distilled one.
    """
    if 'dist_token' in keys:
        raise ValueError(
            'distilled models (dist_token, head_dist) are not supported, since '
            'VisionTransformer has no distillation token: take one trained without')
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
        embed_dims=ours['cls_token'].size(-1),
        num_layers=count_blocks(ours, 'blocks.'))


# ----------------------------------------------------------------------- cait
LAYER_SCALES = (Row('scale1.weight', 'gamma_1'), Row('scale2.weight', 'gamma_2'))
CAIT_BLOCK = TIMM_BLOCK + LAYER_SCALES + (
    Row('attn.mix_logits', 'attn.proj_l', LINEAR),
    Row('attn.mix_weights', 'attn.proj_w', LINEAR),
)
CAIT_CLASS_BLOCK = tuple(
    row for row in TIMM_BLOCK if row.ours != 'attn.qkv') + LAYER_SCALES + (
        Row('attn.q', 'attn.q', LINEAR),
        Row('attn.kv', 'attn.k + attn.v', LINEAR),
    )


def cait_rows(keys: Keys) -> List[Row]:
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
        rows += nested(f'class_layers.blocks.{i}.', f'blocks_token_only.{i}.',
                       CAIT_CLASS_BLOCK)
    return rows


def cait_arch(ours: StateDict) -> dict:
    """The whole architecture."""
    return dict(
        embed_dims=ours['class_layers.cls_token'].size(-1),
        num_layers=count_blocks(ours, 'blocks.'),
        num_heads=len(ours['blocks.0.attn.mix_logits.bias']),
        num_class_layers=count_blocks(ours, 'class_layers.blocks.'))


# ----------------------------------------------------------------------- swin
SWIN_BLOCK = TIMM_BLOCK + (
    Row('attn.relative_position_bias_table', 'attn.relative_position_bias_table'), )
SWIN_MERGING = (
    Row('norm', 'norm', NORM),
    Row('reduction', 'reduction', WEIGHT),
)
MM_SWIN_BLOCK = (
    Row('norm1', 'norm1', NORM),
    Row('attn.relative_position_bias_table',
        'attn.w_msa.relative_position_bias_table'),
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


def swin_rows(keys: Keys) -> List[Row]:
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
            rows += nested(f'stages.{i}.embedding.',
                           f'{stages}.{i - ends_stage}.downsample.', merging)
        for j in range(count_blocks(keys, f'{stages}.{i}.blocks.')):
            inner = f'{i}.blocks.{j}.'
            rows += nested(f'stages.{inner}', f'{stages}.{inner}', block)
    return rows


def swin_arch(ours: StateDict) -> dict:
    """The whole architecture."""
    stages = range(count_blocks(ours, 'stages.'))
    tables = [
        ours[f'stages.{i}.blocks.0.attn.relative_position_bias_table'] for i in stages
    ]
    return dict(
        embed_dims=len(ours['stages.0.embedding.layer.0.bias']),
        depths=[count_blocks(ours, f'stages.{i}.blocks.') for i in stages],
        num_heads=[table.size(1) for table in tables])


FAMILIES: Dict[str, Family] = dict(
    soft=Family(soft_rows, soft_arch),
    deit=Family(deit_rows, deit_arch),
    cait=Family(cait_rows, cait_arch),
    swin=Family(
        swin_rows, swin_arch, buffers=('attn_mask', 'relative_position_index')))
