"""Layers that attentions, backbones and necks share."""

from .blocks import FeatScale, TransformerBlock, drop_path_rates
from .depthwise import DepthwiseConv
from .embeddings import (
    ConvEmbedding,
    ConvStem,
    InvertedMerging,
    LayerNorm2d,
    PatchMerging,
    ResidualStem,
)
from .positions import PositionTable, embed_tokens, learned_table

__all__ = [
    'ConvEmbedding',
    'ConvStem',
    'DepthwiseConv',
    'FeatScale',
    'InvertedMerging',
    'LayerNorm2d',
    'PatchMerging',
    'PositionTable',
    'ResidualStem',
    'TransformerBlock',
    'drop_path_rates',
    'embed_tokens',
    'learned_table',
]
