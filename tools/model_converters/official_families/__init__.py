"""What official checkpoints hold, family by family, for convert_official.py.

A family says which of our modules is made of which official ones. Its rows follow
from the keys of a checkpoint, because code bases name the same modules differently:
`timm` stands for the names that timm and the official repositories share, `mm` for
those of OpenMMLab.
"""

from .blocks import pyramid_arch
from .cait import cait_arch, cait_rows
from .cswin import cswin_rows
from .deit import deit_arch, deit_rows
from .rows import Family
from .soft import soft_arch, soft_rows
from .swin import swin_arch, swin_rows

FAMILIES: dict[str, Family] = dict(
    soft=Family(soft_rows, soft_arch),
    deit=Family(deit_rows, deit_arch),
    cait=Family(cait_rows, cait_arch),
    swin=Family(swin_rows, swin_arch, buffers=('attn_mask', 'relative_position_index')),
    cswin=Family(cswin_rows, pyramid_arch),
)
