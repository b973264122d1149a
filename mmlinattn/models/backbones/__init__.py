from .base import BaseBackbone
from .embeddings import ConvEmbedding, ConvStem
from .pyramid import PyramidTransformer
from .soft import SOFT, SOFTPlusPlus

__all__ = [
    'BaseBackbone', 'ConvEmbedding', 'ConvStem', 'PyramidTransformer', 'SOFT',
    'SOFTPlusPlus'
]
