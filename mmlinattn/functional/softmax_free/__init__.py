"""Softmax-free attention of SOFT and SOFT++: the Gaussian kernel and its products, and
the landmarks' (pseudo-)inverse."""

from .attention import softmax_free_attention
from .inverse import check_solver, cholesky_solve, newton_alpha, newton_pinv
from .kernel import gaussian_kernel, gaussian_product, kernel_products

__all__ = [
    'check_solver',
    'cholesky_solve',
    'gaussian_kernel',
    'gaussian_product',
    'kernel_products',
    'newton_alpha',
    'newton_pinv',
    'softmax_free_attention',
]
