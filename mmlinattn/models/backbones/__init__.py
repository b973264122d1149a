from .base import BaseBackbone
from .cait import CaiT
from .embeddings import ConvEmbedding, ConvStem, PatchMerging
from .isotropic import IsotropicTransformer
from .pyramid import PyramidTransformer
from .soft import SOFT, SOFTPlusPlus
from .swin import SwinTransformer
from .vit import VisionTransformer

__all__ = [
    'BaseBackbone', 'CaiT', 'ConvEmbedding', 'ConvStem',
    'IsotropicTransformer', 'PatchMerging', 'PyramidTransformer', 'SOFT',
    'SOFTPlusPlus', 'SwinTransformer', 'VisionTransformer'
]
