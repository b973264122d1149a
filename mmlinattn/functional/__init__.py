"""One equation, one function: tensors in, tensors out."""

from .agent import agent_attention
from .blocks import blockify, crop_map, pad_map, square_side, unblockify
from .convolution import depthwise_conv2d
from .efficient import efficient_attention
from .elfatt import elfatt_attention
from .focused import focus, focused_linear_attention
from .local import block_attention, local_attention
from .maps import to_map, to_tokens, unflatten
from .mlla import mlla_attention
from .nystrom import iterative_pinv, nystrom_attention
from .oversmoothing import attn_scale, dc_component, feat_scale
from .performer import orthogonal_features, performer_attention
from .pooling import adaptive_avg_pool2d, cell_avg_pool2d
from .rank_augmented import rank_augmented_attention
from .rotary import rotary_linear_attention, rotate
from .softmax_free import (
    check_solver,
    cholesky_solve,
    gaussian_kernel,
    gaussian_product,
    kernel_products,
    newton_alpha,
    newton_pinv,
    softmax_free_attention,
)

__all__ = [
    'adaptive_avg_pool2d',
    'agent_attention',
    'attn_scale',
    'block_attention',
    'blockify',
    'cell_avg_pool2d',
    'check_solver',
    'cholesky_solve',
    'crop_map',
    'dc_component',
    'depthwise_conv2d',
    'efficient_attention',
    'elfatt_attention',
    'feat_scale',
    'focus',
    'focused_linear_attention',
    'gaussian_kernel',
    'gaussian_product',
    'iterative_pinv',
    'kernel_products',
    'local_attention',
    'mlla_attention',
    'newton_alpha',
    'newton_pinv',
    'nystrom_attention',
    'orthogonal_features',
    'pad_map',
    'performer_attention',
    'rank_augmented_attention',
    'rotary_linear_attention',
    'rotate',
    'softmax_free_attention',
    'square_side',
    'to_map',
    'to_tokens',
    'unblockify',
    'unflatten',
]
