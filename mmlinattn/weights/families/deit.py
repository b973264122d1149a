"""DeiT, and other plain Vision Transformers, such as DINOv2."""

from mmlinattn.utils.names import count_blocks

from ..rows import LINEAR, NORM, Keys, Row, modules, nested
from .layout import (
    BLOCK,
    MM_FFN,
    Family,
    Layout,
    find_scales,
    is_mm,
    our_layout,
    scaling_rows,
)

MM_DEIT_BLOCK = modules({**BLOCK, 'norm1': 'ln1', 'norm2': 'ln2', **MM_FFN})
# of DINOv2, whose blocks have LayerScale: our names, and its own, by style
LAYER_SCALES = {
    'official': {'scale1.weight': 'ls1.gamma', 'scale2.weight': 'ls2.gamma'},
    'mm': {'scale1.weight': 'attn.gamma1.weight', 'scale2.weight': 'ffn.gamma2.weight'},
}


def read_deit(keys: Keys) -> Layout:
    """Return the layout of a DeiT of any of the code bases.

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
            scales=find_scales(keys, official=True) + find_layer_scale(keys),
        )
    depths = (count_blocks(keys, 'layers.'),)
    return Layout('mm', depths, last_norm='ln1', scales=find_layer_scale(keys))


def our_deit_layout(keys: Keys) -> Layout:
    """Return the layout of our ViT in the official repository."""
    layout = our_layout(keys)
    return layout._replace(scales=layout.scales + find_layer_scale(keys))


def find_layer_scale(keys: Keys) -> tuple[str, ...]:
    """Return the option whose factors are among the keys, official ones or ours."""
    names = [name for style in LAYER_SCALES.values() for name in style.values()]
    endings = (*names, *LAYER_SCALES['official'])
    has_factors = any(key.endswith(endings) for key in keys)
    return ('layer_scale',) if has_factors else ()


def deit_rows(layout: Layout) -> list[Row]:
    """Return rows of DeiT and of DINOv2."""
    if layout.style == 'mm':
        embedding, blocks = 'patch_embed.projection', 'layers'
        block = MM_DEIT_BLOCK
    else:
        embedding, blocks = 'patch_embed.proj', 'blocks'
        # the official FeatScale adds the scaled parts twice
        block = modules(BLOCK) + scaling_rows(layout, lambda x: 2 * x, lambda x: x / 2)
    if 'layer_scale' in layout.scales:
        names = LAYER_SCALES[layout.style]
        block += tuple(Row(ours, official) for ours, official in names.items())
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


FAMILY = Family(
    name='deit',
    title='DeiT',
    code='ViT-Anti-Oversmoothing, DeiT, timm or mmpretrain',
    marks=(
        r'cls_token$',
        r'pos_embed$',
        r'(blocks\.0\.attn\.qkv|layers\.0\.ln1)\.weight$',
    ),
    read=read_deit,
    rows=deit_rows,
    attentions=('SoftmaxAttention',),
    back=our_deit_layout,
    buffers=('mask_token',),  # of DINOv2's own training
)
