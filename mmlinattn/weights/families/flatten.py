"""FLatten: FLatten-Swin and FLatten-CSWin, classifiers."""

from torch import Tensor

from ..rows import LINEAR, Row
from .variants import variant


def from_channels_last(tensor: Tensor) -> Tensor:
    """Return a vector from (1, 1, C)."""
    return tensor.flatten()


def to_channels_last(tensor: Tensor) -> Tensor:
    """Return the inverse of :func:`from_channels_last`."""
    return tensor.view(1, 1, -1)


FOCUSED = (
    Row('pos_embed.table', 'positional_encoding'),
    Row('focus_scale', 'scale', change=from_channels_last, undo=to_channels_last),
    Row('local_conv', 'dwc', LINEAR),
)
FAMILY = variant(
    'flatten',
    'FLatten',
    'LeapLabTHU/FLatten-Transformer',
    'FocusedLinearAttention',
    both=FOCUSED,
    cswin=(Row('lepe', 'get_v', LINEAR),),
)
