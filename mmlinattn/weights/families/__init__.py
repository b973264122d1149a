"""What official checkpoints hold, family by family.

A family says which of our modules is made of which official ones. Its rows follow
from a layout, which is read from the keys of a checkpoint, because code bases name
the same modules differently.
"""

from .blocks import pyramid_arch
from .cait import cait_arch, cait_rows, is_cait, read_cait
from .cswin import cswin_rows, is_cswin, our_cswin, read_cswin
from .deit import deit_arch, deit_rows, is_deit, read_deit
from .layout import SCALES, Family, Layout, our_plain, our_pyramid
from .soft import is_soft, read_soft, soft_arch, soft_rows
from .swin import is_swin, our_swin, read_swin, swin_arch, swin_rows

__all__ = ['FAMILIES', 'SCALES', 'Family', 'Layout']

# CaiT before DeiT, whose marks it has too
FAMILIES: dict[str, Family] = dict(
    soft=Family(
        'SOFT',
        'fudan-zvg/SOFT',
        is_soft,
        read_soft,
        our_pyramid,
        soft_rows,
        soft_arch,
        ('SoftmaxFreeAttention', 'SoftmaxAttention'),
        place='state_dict_ema',
    ),
    cait=Family(
        'CaiT',
        'ViT-Anti-Oversmoothing, CaiT or timm',
        is_cait,
        read_cait,
        our_plain,
        cait_rows,
        cait_arch,
        ('TalkingHeadsAttention', 'ClassAttention'),
    ),
    deit=Family(
        'DeiT',
        'ViT-Anti-Oversmoothing, DeiT, timm or mmpretrain',
        is_deit,
        read_deit,
        our_plain,
        deit_rows,
        deit_arch,
        ('SoftmaxAttention',),
    ),
    swin=Family(
        'Swin',
        'ViT-Anti-Oversmoothing, Swin, timm, mmpretrain, mmdet or mmseg',
        is_swin,
        read_swin,
        our_swin,
        swin_rows,
        swin_arch,
        ('WindowAttention',),
        buffers=('attn_mask', 'relative_position_index'),
    ),
    cswin=Family(
        'CSWin',
        'microsoft/CSWin-Transformer',
        is_cswin,
        read_cswin,
        our_cswin,
        cswin_rows,
        pyramid_arch,
        ('CrossShapedWindowAttention', 'SoftmaxAttention'),
        place='state_dict_ema',
    ),
)
