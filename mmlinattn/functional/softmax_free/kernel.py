"""The Gaussian kernel of softmax-free attention, and products with it.

Legend: B batch, h heads, M rows, N columns of the kernel matrix K, d head dim,
e channels of values.
"""

from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from ..precision import at_least_float32, full_float32
from ..tracing import apply, is_exported
from .products import Products, kernels_run, pick_products


def gaussian_kernel(q: Tensor, k: Optional[Tensor] = None) -> Tensor:
    r"""Gaussian kernel :math:`\exp(-\|q_i - k_j\|^2 / 2)`.

    With q and k divided by :math:`d^{1/4}` this is the kernel of *SOFT:
    Softmax-free Transformer with Linear Complexity* (arXiv 2110.11945).

    Args:
        q (Tensor): (..., M, d).
        k (Tensor, optional): (..., N, d). Default: q itself, with a diagonal of
            exactly 1; at large norms, rounding would make it less.

    Returns:
        Tensor: (..., M, N), values in [0, 1]. Half precision is computed and
        returned in float32: a squared norm overflows float16. The gradient can be
        taken once, not twice.
    """
    with full_float32(q):
        if k is None:
            return apply(_OwnKernel, *at_least_float32(q))
        return apply(_GaussianKernel, *at_least_float32(q, k))


def _kernel(q: Tensor, k: Tensor) -> Tensor:
    """Works in place; PyTorch's own graph would keep a matrix for each step."""
    half_square_q = q.square().sum(-1, keepdim=True) / 2
    half_square_k = k.square().sum(-1).unsqueeze(-2) / 2
    exponents = (q @ k.transpose(-2, -1)).sub_(half_square_q).sub_(half_square_k)
    # rounding can make a distance negative
    return exponents.clamp_(max=0).exp_()


class _GaussianKernel(Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor) -> Tensor:
        kernel = _kernel(q, k)
        ctx.save_for_backward(q, k, kernel)
        return kernel

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        q, k, kernel = ctx.saved_tensors
        with full_float32(grad):
            s = grad * kernel
            grad_q = s @ k - s.sum(-1, keepdim=True) * q
            grad_k = s.mT @ q - s.sum(-2).unsqueeze(-1) * k
        return grad_q, grad_k


class _OwnKernel(Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor) -> Tensor:
        if not is_exported() and q.dtype == torch.float32 and kernels_run(q):
            from .triton.landmarks import own_kernel  # imports Triton

            kernel = own_kernel(q)
            ctx.save_for_backward(q, kernel)
            return kernel
        kernel = _kernel(q, q)
        if is_exported():  # ONNX has no view of a diagonal
            kernel = kernel.maximum(torch.eye(q.size(-2)).to(q))
        else:
            kernel.diagonal(dim1=-2, dim2=-1).fill_(1)
        ctx.save_for_backward(q, kernel)
        return kernel

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        q, kernel = ctx.saved_tensors
        with full_float32(grad):
            s = (grad + grad.mT) * kernel
            return s @ q - s.sum(-1, keepdim=True) * q


def gaussian_product(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Computes ``gaussian_kernel(q, k) @ v`` without the kernel matrix in memory.

    It is computed in blocks, forward and backward: time grows with M * N,
    memory with M + N. The gradient can be taken once, not twice.

    Triton kernels compute it where they can run, plain PyTorch elsewhere. The
    environment variable ``MMLINATTN_KERNELS`` forces ``triton`` or ``torch``.

    Args:
        q (Tensor): (B, h, M, d).
        k (Tensor): (B, h, N, d).
        v (Tensor): (B, h, N, e).

    Returns:
        Tensor: (B, h, M, e), sums and result in float32 for half precision. The
        kernels multiply half precision as it is, PyTorch converts it to float32.

    Raises:
        ValueError: If the shapes do not fit, or ``MMLINATTN_KERNELS`` is none
            of 'auto', 'triton' and 'torch'.
        RuntimeError: If it is 'triton' and the kernels can't run.
    """
    fits = (
        q.dim() == k.dim() == v.dim() == 4
        and q.shape[:2] == k.shape[:2]
        and q.size(-1) == k.size(-1)
        and k.shape[:3] == v.shape[:3]
    )
    if not fits:
        raise ValueError(
            'q, k and v must be (B, h, M, d), (B, h, N, d) and (B, h, N, e), '
            f'got {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}'
        )
    with full_float32(q):
        return _GaussianProduct.apply(q, k, v, pick_products(q, k, v))


class _GaussianProduct(Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, products: Products
    ) -> Tensor:
        ctx.save_for_backward(q, k, v)
        ctx.products = products
        return products.product(q, k, v)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
        inputs = ctx.saved_tensors
        with full_float32(grad):
            grads = ctx.products.product_grad(*inputs, grad)
        return (*(g.to(x.dtype) for g, x in zip(grads, inputs)), None)
