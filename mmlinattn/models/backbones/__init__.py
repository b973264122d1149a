from .base import BaseBackbone
from .cait import CaiT
from .cswin import CSWinTransformer
from .isotropic import IsotropicTransformer
from .pyramid import PyramidTransformer
from .soft import SOFT, SOFTPlusPlus
from .swin import SwinTransformer
from .vit import VisionTransformer

__all__ = [
    'SOFT',
    'BaseBackbone',
    'CSWinTransformer',
    'CaiT',
    'IsotropicTransformer',
    'PyramidTransformer',
    'SOFTPlusPlus',
    'SwinTransformer',
    'VisionTransformer',
]
