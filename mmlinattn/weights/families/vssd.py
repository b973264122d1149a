"""VSSD: classifiers, and the backbone of detectors and segmentors."""

from mmlinattn.utils.names import count_blocks

from ..rows import LINEAR, NORM, WEIGHT, Keys, Row, modules, nested
from .layout import Family, Layout, stage_rows
from .mlla import MLLA_MERGING, MLLA_STEM

# a block without its attention
BLOCK = modules(
    {
        'cpe1': 'cpe1',
        'norm1': 'norm1',
        'cpe2': 'cpe2',
        'norm2': 'norm2',
        'ffn.layers.0.0': 'mlp.fc1',
        'ffn.layers.1': 'mlp.fc2',
    }
)
LINEAR_ATTENTION = (
    Row('in_proj', 'in_proj', WEIGHT),
    Row('conv', 'conv2d', LINEAR),
    Row('A_log', 'A_log'),
    Row('dt_bias', 'dt_bias'),
    Row('D', 'D'),
    Row('norm', 'norm', NORM),
    Row('proj', 'out_proj', WEIGHT),
)
SOFTMAX_ATTENTION = Row('qkv', 'to_qkv', WEIGHT), Row('proj', 'to_out', LINEAR)


def read_layout(keys: Keys, stages: str, norm: str) -> Layout:
    """Return the layout of a model whose stages and norms of maps have these names.

    Detectors and segmentors norm every map, outnorm0 to outnorm3; classifiers the last
    one, and call it norm.
    """
    number = count_blocks(keys, f'{stages}.')
    prefixes = [f'{stages}.{i}.blocks.' for i in range(number)]
    depths = tuple(count_blocks(keys, prefix) for prefix in prefixes)
    own = tuple(
        count_blocks(keys, prefix, r'attn\.A_log', least=0) for prefix in prefixes
    )
    last = number - 1
    norms = tuple(i for i in range(last) if f'{norm}{i}.weight' in keys)
    is_normed = norms or f'outnorm{last}.weight' in keys
    last_norm = f'outnorm{last}' if is_normed else 'norm'
    return Layout(
        style='official', depths=depths, last_norm=last_norm, norms=norms, own=own
    )


def read_vssd(keys: Keys) -> Layout:
    """Return the layout of an official VSSD."""
    return read_layout(keys, 'layers', 'outnorm')


def our_vssd_layout(keys: Keys) -> Layout:
    """Return the layout of one of our backbones in the official repository."""
    return read_layout(keys, 'stages', 'norm')


def vssd_rows(layout: Layout) -> list[Row]:
    """Return rows of VSSD."""
    last = len(layout.depths) - 1
    rows = nested('stages.0.embedding.', 'patch_embed.', MLLA_STEM)
    rows += [Row(f'norm{i}', f'outnorm{i}', NORM) for i in layout.norms]
    rows.append(Row(f'norm{last}', layout.last_norm, NORM))
    rows += stage_rows(layout.depths, 'downsample.conv.', MLLA_MERGING, BLOCK)
    for i, depth in enumerate(layout.depths):
        for j in range(depth):
            is_linear = layout.has_own(i, j)
            attention = LINEAR_ATTENTION if is_linear else SOFTMAX_ATTENTION
            inner = f'{i}.blocks.{j}.attn.'
            rows += nested(f'stages.{inner}', f'layers.{inner}', attention)
    return rows


FAMILY = Family(
    name='vssd',
    title='VSSD',
    code='YuHengsss/VSSD',
    marks=(r'layers\.0\.blocks\.0\.attn\.A_log$',),
    read=read_vssd,
    rows=vssd_rows,
    attentions=('VSSDAttention', 'SoftmaxAttention'),
    back=our_vssd_layout,
)
