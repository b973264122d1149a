"""Softmax-free attention of SOFT and SOFT++.

``attention`` has the whole attention. ``kernel`` has the Gaussian kernel as the
papers write it, and products with it that never hold it in memory; ``products`` is
the interface of those products, ``streaming`` and ``triton`` are its
implementations. ``inverse`` is the landmarks' (pseudo-)inverse as a function of
autograd, ``solvers`` are the ways to apply it, ``newton``, ``polynomial`` and
``lanczos`` their mathematics; ``halves`` multiplies float32 on half-precision tensor
cores.
"""

from .attention import softmax_free_attention
from .inverse import cholesky_solve, newton_pinv
from .kernel import gaussian_kernel, gaussian_product
from .newton import newton_alpha
from .solvers import check_solver

__all__ = [
    'check_solver',
    'cholesky_solve',
    'gaussian_kernel',
    'gaussian_product',
    'newton_alpha',
    'newton_pinv',
    'softmax_free_attention',
]
