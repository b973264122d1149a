"""One equation, one function: tensors in, tensors out."""

from .agent import agent_attention
from .blocks import (
    block_shape_on,
    blockify,
    blocks_to_map,
    crop_map,
    pad_map,
    square_side,
    unblockify,
)
from .convolution import depthwise_conv2d, dynamic_conv2d
from .efficient import efficient_attention
from .elfatt import elfatt_attention
from .focused import focus, focused_linear_attention
from .inline import inline_attention
from .local import local_attention
from .magnitude_aware import magnitude_aware_attention
from .maps import to_map, to_tokens, unflatten, without_extra_tokens
from .mlla import add_mlla_attention, mlla_attention
from .norm_aware import norm_aware_attention
from .nystrom import iterative_pinv, nystrom_attention
from .oversmoothing import attn_scale, dc_component, feat_scale
from .performer import orthogonal_features, performer_attention
from .polaformer import polarity_aware_attention
from .pooling import adaptive_avg_pool2d, resize
from .rank_augmented import rank_augmented_attention
from .relu_linear import relu_linear_attention
from .rotary import rotary_linear_attention, rotate, rotate_both, turned_heads
from .softmax_free.attention import divide_by_row_sums, softmax_free_attention
from .softmax_free.exact import gaussian_attention
from .softmax_free.inverse import cholesky_solve, newton_alpha, newton_pinv
from .softmax_free.kernel import gaussian_kernel, gaussian_product, kernel_products
from .softmax_free.linear import linear_softmax_free_attention
from .ttt import trained_conv, trained_swiglu
from .vssd import non_causal_ssd

__all__ = [
    'adaptive_avg_pool2d',
    'add_mlla_attention',
    'agent_attention',
    'attn_scale',
    'block_shape_on',
    'blockify',
    'blocks_to_map',
    'cholesky_solve',
    'crop_map',
    'dc_component',
    'depthwise_conv2d',
    'divide_by_row_sums',
    'dynamic_conv2d',
    'efficient_attention',
    'elfatt_attention',
    'feat_scale',
    'focus',
    'focused_linear_attention',
    'gaussian_attention',
    'gaussian_kernel',
    'gaussian_product',
    'inline_attention',
    'iterative_pinv',
    'kernel_products',
    'linear_softmax_free_attention',
    'local_attention',
    'magnitude_aware_attention',
    'mlla_attention',
    'newton_alpha',
    'newton_pinv',
    'non_causal_ssd',
    'norm_aware_attention',
    'nystrom_attention',
    'orthogonal_features',
    'pad_map',
    'performer_attention',
    'polarity_aware_attention',
    'rank_augmented_attention',
    'relu_linear_attention',
    'resize',
    'rotary_linear_attention',
    'rotate',
    'rotate_both',
    'softmax_free_attention',
    'square_side',
    'to_map',
    'to_tokens',
    'trained_conv',
    'trained_swiglu',
    'turned_heads',
    'unblockify',
    'unflatten',
    'without_extra_tokens',
]
