"""PolaFormer: Pola-Swin, classifiers."""

from ..rows import LINEAR, Row
from .agent import as_first, first
from .flatten import FOCUSED
from .variants import variant

FAMILY = variant(
    'polaformer',
    'PolaFormer',
    'ZacharyMeng/PolaFormer',
    'PolaFormerAttention',
    both=(*FOCUSED, Row('focus_power', 'power', change=first, undo=as_first)),
    swin=(Row('qkv', 'qkvg', LINEAR),),
)
