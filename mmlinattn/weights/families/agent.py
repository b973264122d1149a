"""Agent attention: Agent-Swin, also of detectors and segmentors, and Agent-CSWin."""

from torch import Tensor

from ..rows import LINEAR, Row
from .variants import variant


def first(tensor: Tensor) -> Tensor:
    """Return the only entry of a batch."""
    return tensor[0]


def as_first(tensor: Tensor) -> Tensor:
    """Return the inverse of :func:`first`."""
    return tensor[None]


def agents_first(tensor: Tensor) -> Tensor:
    """(1, h, H, W, n) to (h, n, H, W)."""
    return tensor[0].permute(0, 3, 1, 2).contiguous()


def agents_last(tensor: Tensor) -> Tensor:
    """Return the inverse of :func:`agents_first`."""
    return tensor.permute(0, 2, 3, 1).contiguous()[None]


FAMILY = variant(
    'agent',
    'Agent Attention',
    'LeapLabTHU/Agent-Attention',
    'AgentAttention',
    both=(
        Row('agent_bias.table', 'an_bias'),
        Row('agent_bias.rows', 'ah_bias', change=first, undo=as_first),
        Row('agent_bias.columns', 'aw_bias', change=first, undo=as_first),
        Row('query_bias.table', 'na_bias'),
        Row('query_bias.rows', 'ha_bias', change=agents_first, undo=agents_last),
        Row('query_bias.columns', 'wa_bias', change=agents_first, undo=agents_last),
    ),
    swin=(Row('lepe', 'dwc', LINEAR),),
    cswin=(Row('lepe', 'get_v', LINEAR),),
)
