"""Backbones. An import here registers a class."""

from .base import BaseBackbone
from .cait import CaiT
from .cswin import CSWinTransformer
from .isotropic import IsotropicTransformer
from .mlla import MLLA
from .pyramid import PyramidTransformer
from .ravlt import RAVLT, MAViT
from .soft import SOFT, LinearSOFTPlusPlus, SOFTPlusPlus
from .swin import SwinTransformer
from .vit import VisionTransformer
from .vittt import HViTTT, ViTTT

__all__ = [
    'MLLA',
    'RAVLT',
    'SOFT',
    'BaseBackbone',
    'CSWinTransformer',
    'CaiT',
    'HViTTT',
    'IsotropicTransformer',
    'LinearSOFTPlusPlus',
    'MAViT',
    'PyramidTransformer',
    'SOFTPlusPlus',
    'SwinTransformer',
    'ViTTT',
    'VisionTransformer',
]
