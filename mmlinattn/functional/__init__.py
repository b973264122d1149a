"""One equation, one function: tensors in, tensors out."""
from .blocks import blockify, crop_map, pad_map, unblockify
from .newton import check_solver, newton_alpha, newton_pinv
from .oversmoothing import attn_scale, dc_component, feat_scale
from .softmax_free import gaussian_kernel, softmax_free_attention

__all__ = [
    'attn_scale', 'blockify', 'check_solver', 'crop_map', 'dc_component',
    'feat_scale', 'gaussian_kernel', 'newton_alpha', 'newton_pinv', 'pad_map',
    'softmax_free_attention', 'unblockify'
]
