"""SOFT and SOFT++."""

from mmlinattn.utils.names import count_blocks

from ..rows import BATCH_NORM, LINEAR, NORM, WEIGHT, Keys, Row, modules, nested
from .layout import BLOCK, Family, Layout

SOFT_STEM = tuple(
    Row(f'{i}.{j}', str(3 * i + j), tensors)
    for i in range(3)
    for j, tensors in enumerate((LINEAR, BATCH_NORM))
)
SOFT_MERGING = (Row('layer.0', '0', LINEAR), Row('layer.1', '1', BATCH_NORM))
SOFT_BLOCK = (
    *modules(
        {
            'attn.q': 'att.mha.W_q',
            'attn.v': 'att.mha.W_v',
            'attn.sampler.norm': 'att.mha.attn.Qnorm_act.0',
            'attn.proj': 'att.mha.ff',
            'norm1': 'att.norm1',
            'ffn.layers.0.0': 'att.ff1',
            'ffn.layers.1': 'att.ff2',
            'norm2': 'att.norm2',
        }
    ),
    Row('attn.sampler.conv', 'att.mha.attn.Qlandmark_op', WEIGHT),
    Row('attn.local_conv', 'att.mha.attn.conv', WEIGHT),
)
SOFT_LAST_BLOCK = tuple(
    row._replace(official='attn.q + attn.kv', shares=(1, 2))
    if row.ours == 'attn.qkv'
    else row
    for row in modules(BLOCK)
)


def read_soft(keys: Keys) -> Layout:
    """Return the layout of an official SOFT, whose stages count from 1."""
    return Layout(
        'official', tuple(count_blocks(keys, f'block{number}.') for number in '1234')
    )


def soft_rows(layout: Layout) -> list[Row]:
    """Return rows of SOFT."""
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


FAMILY = Family(
    name='soft',
    title='SOFT',
    code='fudan-zvg/SOFT',
    marks=(r'patch_embed1\.proj\.0\.',),
    read=read_soft,
    rows=soft_rows,
    attentions=('SoftmaxFreeAttention', 'SoftmaxAttention'),
    place='state_dict_ema',
)
