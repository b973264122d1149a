"""EfficientViT: classifiers and segmentors of the authors, and timm's classifiers."""

from mmlinattn.utils.names import count_blocks

from ..rows import BATCH_NORM, LINEAR, NORM, WEIGHT, Keys, Row, nested
from .layout import HEAD, Family, Layout
from .ravlt import from_conv, to_conv

# official names of a block's convolutions, by its kind
CONVOLUTIONS = dict(
    separable=('depth_conv', 'point_conv'),
    basic=('conv1', 'conv2'),
    mb=('inverted_conv', 'depth_conv', 'point_conv'),
    fused=('spatial_conv', 'point_conv'),
)
# kinds of the blocks of the stem and of stages, by the series
KINDS = dict(
    b=('separable', 'mb', 'mb', 'attention', 'attention'),
    l=('basic', 'fused', 'fused', 'mb', 'attention'),
)
NORMED = (True, True, True, False, False)


def convolution(ours: str, official: str, normed: bool = True) -> list[Row]:
    """Return rows of a convolution and its norm, or of one with a bias."""
    if not normed:
        return [Row(f'{ours}.0', f'{official}.conv', LINEAR)]
    return [
        Row(f'{ours}.0', f'{official}.conv', WEIGHT),
        Row(f'{ours}.1', f'{official}.norm', BATCH_NORM),
    ]


def bottleneck(kind: str, ours: str, official: str, normed: bool) -> list[Row]:
    """Return rows of a block's convolutions, the last of which always has a norm."""
    names, rows = CONVOLUTIONS[kind], []
    for i, name in enumerate(names):
        has_norm = normed or i == len(names) - 1
        rows += convolution(f'{ours}.{i}', f'{official}.{name}', has_norm)
    return rows


def projection(ours: str, official: str) -> Row:
    """Return a linear layer of ours without bias, officially a 1 x 1 convolution."""
    return Row(ours, official, WEIGHT, change=from_conv, undo=to_conv)


def attention_rows(scales: int) -> list[Row]:
    """Return rows of a block with attention of a number of further scales."""
    rows = [
        projection('attn.qkv', 'qkv.conv'),
        projection('attn.proj', 'proj.conv'),
        Row('norm', 'proj.norm', BATCH_NORM),
    ]
    for i in range(scales):
        ours, official = f'attn.aggregations.{i}', f'aggreg.{i}'
        rows.append(Row(f'{ours}.depthwise', f'{official}.0', WEIGHT))
        rows.append(Row(f'{ours}.pointwise', f'{official}.1', WEIGHT))
    rows = nested('', 'context_module.main.', rows)
    return rows + bottleneck('mb', 'ffn', 'local_module.main', normed=False)


def prefixes_of(style: str) -> list[str]:
    """Return official prefixes of the blocks of the stem and of stages, for a style of
    :class:`Layout`: the code base and the series."""
    code, series = style.split('-')
    if code == 'timm':
        return ['stem.', *(f'stages.{i}.blocks.' for i in range(4))]
    first = ['input_stem.op_list.'] if series == 'b' else []
    return [*first, *(f'stages.{i}.op_list.' for i in range(5 - len(first)))]


def read_efficientvit(keys: Keys) -> Layout:
    """Return the layout of an official EfficientViT or of timm's.

    ``depths`` are the numbers of blocks of the stem and of stages, ``own`` that of
    further scales.
    """
    code = 'timm' if any(key.startswith('stem.') for key in keys) else 'official'
    series = 'l' if any('.spatial_conv.' in key for key in keys) else 'b'
    style = f'{code}-{series}'
    stem, *stages = prefixes_of(style)
    depths = [count_blocks(keys, prefix) for prefix in stages]
    if code == 'timm':
        depths.insert(0, count_blocks(keys, 'stem.res', least=0))
    else:
        depths.insert(0, count_blocks(keys, stem) - 1)
    scales = count_blocks(keys, f'{stages[-1]}1.context_module.main.aggreg.', least=0)
    return Layout(style=style, depths=tuple(depths), last_norm='', own=(scales,))


def our_efficientvit_layout(keys: Keys) -> Layout:
    """Return the layout of one of our backbones in the official repository."""
    series = 'b' if 'stages.0.0.layers.2.0.weight' in keys else 'l'
    depths = [count_blocks(keys, f'stages.{i}.') for i in range(4)]
    stem = count_blocks(keys, 'stem.') - 1
    scales = count_blocks(keys, 'stages.3.1.attn.aggregations.', least=0)
    return Layout(
        style=f'official-{series}', depths=(stem, *depths), last_norm='', own=(scales,)
    )


def efficientvit_rows(layout: Layout) -> list[Row]:
    """Return rows of EfficientViT."""
    code, series = layout.style.split('-')
    stem, *stages = prefixes_of(layout.style)
    kinds = KINDS[series]
    first, block = f'{stem}0', f'{stem}%d.main'
    if code == 'timm':
        first, block = 'stem.in_conv', 'stem.res%d.main'
    rows = convolution('stem.0.0', first)
    for j in range(layout.depths[0]):
        official = block % (j if code == 'timm' else j + 1)
        rows += bottleneck(kinds[0], f'stem.{j + 1}.layers', official, normed=True)
    for i, prefix in enumerate(stages):
        kind, normed = kinds[i + 1], NORMED[i + 1]
        for j in range(layout.depths[i + 1]):
            ours, official = f'stages.{i}.{j}.', f'{prefix}{j}.'
            if kind == 'attention' and j:
                rows += nested(ours, official, attention_rows(layout.own[0]))
            else:
                convolutions = 'mb' if kind == 'attention' else kind
                names = f'{ours}layers', f'{official}main'
                rows += bottleneck(convolutions, *names, normed)
    return rows


def classifier_rows(conv: str, linear: str, norm: str, last: str) -> tuple[Row, ...]:
    """Return rows of a classifier's layers behind its backbone, for their official
    names."""
    return (
        *convolution('neck.layer', conv),
        Row('neck.hidden.0', linear, WEIGHT),
        Row('neck.hidden.1', norm, NORM),
        HEAD._replace(official=last),
    )


def segmentor_rows(keys: Keys) -> list[Row]:
    """Return rows of a segmentor's head, for its official keys or ours."""
    ours = 'decode_head.'
    is_official = any(key.startswith('head.input_ops.') for key in keys)
    if not is_official and not any(key.startswith(f'{ours}laterals.') for key in keys):
        return []
    if is_official:
        number = count_blocks(keys, 'head.middle.op_list.', least=0)
        is_fused = any('.spatial_conv.' in key for key in keys)
        has_last = any(key.startswith('head.output_ops.0.op_list.1.') for key in keys)
    else:
        number = count_blocks(keys, f'{ours}blocks.', least=0)
        is_fused = not any(key.startswith(f'{ours}blocks.0.layers.2.') for key in keys)
        has_last = any(key.startswith(f'{ours}last.') for key in keys)
    # the official head names the smallest map first
    laterals = ('input_ops.2', 'input_ops.1.op_list.0', 'input_ops.0.op_list.0')
    rows = []
    for i, official in enumerate(laterals):
        rows += convolution(f'laterals.{i}', official)
    for i in range(number):
        names = f'blocks.{i}.layers', f'middle.op_list.{i}.main'
        rows += bottleneck('fused' if is_fused else 'mb', *names, normed=True)
    output = 'output_ops.0.op_list'
    if has_last:
        rows += convolution('last', f'{output}.0')
    rows.append(Row('conv_seg', f'{output}.{int(has_last)}.conv', LINEAR))
    return nested(ours, 'head.', rows)


OFFICIAL = classifier_rows(
    'head.op_list.0',
    'head.op_list.2.linear',
    'head.op_list.2.norm',
    'head.op_list.3.linear',
)
TIMM = classifier_rows(
    'head.in_conv', 'head.classifier.0', 'head.classifier.1', 'head.classifier.4'
)

FAMILY = Family(
    name='efficientvit',
    title='EfficientViT',
    code='mit-han-lab/efficientvit or timm',
    marks=(
        r'stages\.0\.(op_list|blocks)\.0\.(main|conv)\.',
        r'stages\.\d+\.(op_list|blocks)\.1\.context_module\.main\.qkv\.',
    ),
    read=read_efficientvit,
    rows=efficientvit_rows,
    attentions=('MultiScaleLinearAttention',),
    place='state_dict',
    back=our_efficientvit_layout,
    head=OFFICIAL,
    heads={rows[-1].official: rows for rows in (OFFICIAL, TIMM)},
    is_inside=True,
    parts=segmentor_rows,
)
