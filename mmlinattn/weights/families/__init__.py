"""What official checkpoints hold: a file for each family, and a line below."""

from . import cait, cswin, deit, soft, swin
from .layout import Family, Layout, find_scales, our_layout

__all__ = ['FAMILIES', 'Family', 'Layout', 'find_scales', 'our_layout']

# CaiT before DeiT, whose marks it has too
FAMILIES: dict[str, Family] = {
    module.FAMILY.name: module.FAMILY for module in (soft, cait, deit, swin, cswin)
}
