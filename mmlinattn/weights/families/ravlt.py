"""RAVLT and MAViT: classifiers, and the backbone of detectors and segmentors."""

from torch import Tensor

from ..rows import BATCH_NORM, LINEAR, NORM, Keys, Row, modules, nested
from .layout import HEAD, Family, Layout, our_layout_of_maps, read_depths, stage_rows


def from_conv(tensor: Tensor) -> Tensor:
    """Return a 1 x 1 convolution's weight as a linear layer's; a bias unchanged."""
    return tensor.flatten(1) if tensor.dim() == 4 else tensor


def to_conv(tensor: Tensor) -> Tensor:
    """Return the inverse of :func:`from_conv`."""
    return tensor[..., None, None] if tensor.dim() == 2 else tensor


def from_channels(tensor: Tensor) -> Tensor:
    """Return a vector from (1, C, 1, 1)."""
    return tensor.flatten()


def to_channels(tensor: Tensor) -> Tensor:
    """Return the inverse of :func:`from_channels`."""
    return tensor.view(1, -1, 1, 1)


def linear(ours: str, official: str) -> Row:
    """Return a linear layer of ours, officially a 1 x 1 convolution."""
    return Row(
        ours=ours, official=official, tensors=LINEAR, change=from_conv, undo=to_conv
    )


RAVLT_STEM = tuple(
    Row(f'{i}.{j}', str(3 * i + j), tensors)
    for i in range(4)
    for j, tensors in enumerate((LINEAR, BATCH_NORM))
)
RAVLT_MERGING = (
    Row('layer.0', 'reduction', LINEAR),
    Row('layer.1', 'norm', BATCH_NORM),
)
RAVLT_BLOCK = (
    *modules(
        {
            'cpe1': 'pos',
            'norm1': 'norm1.norm',
            'attn.lepe': 'attn.lepe',
            'norm2': 'norm2.norm',
            'ffn_conv': 'ffn.dwconv',
        }
    ),
    linear('attn.qkv', 'attn.qkvo'),
    linear('attn.proj', 'attn.proj'),
    linear('ffn.layers.0.0', 'ffn.fc1'),
    linear('ffn.layers.1', 'ffn.fc2'),
    Row('scale1.weight', 'gamma_1', change=from_channels, undo=to_channels),
    Row('scale2.weight', 'gamma_2', change=from_channels, undo=to_channels),
)


def read_ravlt(keys: Keys) -> Layout:
    """Return the layout of an official RAVLT.

    Detectors and segmentors norm every map, classifiers none.
    """
    depths = read_depths(keys)
    norms = [i for i in range(len(depths)) if f'extra_norms.{i}.norm.weight' in keys]
    return Layout(style='official', depths=depths, last_norm='', norms=tuple(norms))


def ravlt_rows(layout: Layout) -> list[Row]:
    """Return rows of RAVLT."""
    rows = nested('stages.0.embedding.', 'patch_embed.proj.', RAVLT_STEM)
    rows += [Row(f'norm{i}', f'extra_norms.{i}.norm', NORM) for i in layout.norms]
    return rows + stage_rows(layout.depths, 'downsample.', RAVLT_MERGING, RAVLT_BLOCK)


FAMILY = Family(
    name='ravlt',
    title='RAVLT or MAViT',
    code='qhfan/RALA or qhfan/MALA',
    marks=(r'layers\.0\.blocks\.0\.attn\.qkvo\.',),
    read=read_ravlt,
    rows=ravlt_rows,
    # the two models have the same keys
    attentions=(
        'RankAugmentedAttention',
        'MagnitudeAwareAttention',
        'RotarySoftmaxAttention',
    ),
    back=our_layout_of_maps,
    buffers=('angle',),
    head=(
        Row('neck.layer.0', 'proj', LINEAR),
        Row('neck.layer.1', 'norm', BATCH_NORM),
        HEAD._replace(change=from_conv, undo=to_conv),
    ),
)
