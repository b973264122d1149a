"""Backbones, attentions, necks and their layers. An import here registers a class."""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from mmlinattn.parts import CLASSES

from .attentions.agent import AgentAttention as AgentAttention
from .attentions.base import BaseAttention as BaseAttention
from .attentions.base import ProjectedAttention as ProjectedAttention
from .attentions.cross_shaped import (
    CrossShapedWindowAttention as CrossShapedWindowAttention,
)
from .attentions.efficient import EfficientAttention as EfficientAttention
from .attentions.elfatt import ELFATT as ELFATT
from .attentions.focused import FocusedLinearAttention as FocusedLinearAttention
from .attentions.gaussian import GaussianAttention as GaussianAttention
from .attentions.inline import InLineAttention as InLineAttention
from .attentions.landmarks import BiasedSampler as BiasedSampler
from .attentions.landmarks import ConvSampler as ConvSampler
from .attentions.landmarks import PoolingSampler as PoolingSampler
from .attentions.landmarks import RandomSampler as RandomSampler
from .attentions.linformer import LinformerAttention as LinformerAttention
from .attentions.magnitude_aware import (
    MagnitudeAwareAttention as MagnitudeAwareAttention,
)
from .attentions.mlla import MLLAAttention as MLLAAttention
from .attentions.multi_scale import (
    MultiScaleLinearAttention as MultiScaleLinearAttention,
)
from .attentions.multihead import MultiheadSelfAttention as MultiheadSelfAttention
from .attentions.norm_aware import NormAwareLinearAttention as NormAwareLinearAttention
from .attentions.nystrom import NystromAttention as NystromAttention
from .attentions.performer import PerformerAttention as PerformerAttention
from .attentions.polaformer import PolaFormerAttention as PolaFormerAttention
from .attentions.rank_augmented import RankAugmentedAttention as RankAugmentedAttention
from .attentions.rank_augmented import RotarySoftmaxAttention as RotarySoftmaxAttention
from .attentions.softmax import SoftmaxAttention as SoftmaxAttention
from .attentions.softmax_free import SoftmaxFreeAttention as SoftmaxFreeAttention
from .attentions.talking_heads import ClassAttention as ClassAttention
from .attentions.talking_heads import TalkingHeadsAttention as TalkingHeadsAttention
from .attentions.ttt import TTTAttention as TTTAttention
from .attentions.vssd import VSSDAttention as VSSDAttention
from .attentions.window import WindowAttention as WindowAttention
from .backbones.base import BaseBackbone as BaseBackbone
from .backbones.cait import CaiT as CaiT
from .backbones.cswin import CSWinTransformer as CSWinTransformer
from .backbones.efficientvit import EfficientViT as EfficientViT
from .backbones.isotropic import IsotropicTransformer as IsotropicTransformer
from .backbones.mlla import MLLA as MLLA
from .backbones.pyramid import PyramidTransformer as PyramidTransformer
from .backbones.ravlt import RAVLT as RAVLT
from .backbones.ravlt import MAViT as MAViT
from .backbones.soft import SOFT as SOFT
from .backbones.soft import LinearSOFTPlusPlus as LinearSOFTPlusPlus
from .backbones.soft import SOFTPlusPlus as SOFTPlusPlus
from .backbones.swin import SwinTransformer as SwinTransformer
from .backbones.vit import VisionTransformer as VisionTransformer
from .backbones.vittt import HViTTT as HViTTT
from .backbones.vittt import ViTTT as ViTTT
from .backbones.vssd import VSSD as VSSD
from .layers.blocks import FeatScale as FeatScale
from .layers.blocks import TransformerBlock as TransformerBlock
from .layers.blocks import drop_path_rates as drop_path_rates
from .layers.depthwise import DepthwiseConv as DepthwiseConv
from .layers.embeddings import ConvEmbedding as ConvEmbedding
from .layers.embeddings import ConvStem as ConvStem
from .layers.embeddings import InvertedMerging as InvertedMerging
from .layers.embeddings import LayerNorm2d as LayerNorm2d
from .layers.embeddings import PatchMerging as PatchMerging
from .layers.embeddings import ResidualStem as ResidualStem
from .layers.positions import PositionTable as PositionTable
from .layers.positions import embed_tokens as embed_tokens
from .layers.positions import learned_table as learned_table
from .necks.conv_pooling_neck import ConvPoolingNeck as ConvPoolingNeck
from .necks.simple_feature_pyramid import SimpleFeaturePyramid as SimpleFeaturePyramid


def _import_rooms() -> None:
    """Register the classes of files without a line above, which tells editors a name,
    and make them attributes of this package, too."""
    modules = set()
    for room in ('attentions', 'backbones', 'necks'):
        for _, file, _ in iter_modules([str(Path(__file__).parent / room)]):
            modules.add(import_module(f'{__name__}.{room}.{file}').__name__)
    for name, kind in CLASSES.items():
        if kind.__module__ in modules:
            globals().setdefault(name, kind)


_import_rooms()
