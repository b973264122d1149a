"""One equation, one function: tensors in, tensors out."""
from .newton import newton_alpha, newton_pinv
from .oversmoothing import attn_scale, dc_component, feat_scale
from .softmax_free import gaussian_kernel, softmax_free_attention

__all__ = [
    'attn_scale', 'dc_component', 'feat_scale', 'gaussian_kernel',
    'newton_alpha', 'newton_pinv', 'softmax_free_attention'
]
