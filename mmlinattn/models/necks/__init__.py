from .conv_pooling_neck import ConvPoolingNeck
from .simple_feature_pyramid import SimpleFeaturePyramid

__all__ = ['ConvPoolingNeck', 'SimpleFeaturePyramid']
