"""InLine: InLine-Swin and InLine-CSWin, classifiers."""

from ..rows import LINEAR, Row
from .variants import variant

FAMILY = variant(
    'inline',
    'InLine',
    'LeapLabTHU/InLine',
    'InLineAttention',
    both=(
        Row('filters.0', 'residual.0', LINEAR),
        Row('filters.2', 'residual.2', LINEAR),
    ),
    cswin=(Row('lepe', 'get_v', LINEAR),),
)
