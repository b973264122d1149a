"""The Gaussian kernel of softmax-free attention, and products with it.

Legend: B batch, h heads, M rows, K columns, d head dim, e channels of values.
"""

import os

from torch.autograd import Function
from torch.autograd.function import once_differentiable

from . import kernels, streaming
from .precision import at_least_float32, autocast_disabled


def gaussian_kernel(q, k):
    r"""Gaussian kernel :math:`\exp(-\|q_i - k_j\|^2 / 2)`.

    With q and k divided by :math:`d^{1/4}` this is the kernel of *SOFT:
    Softmax-free Transformer with Linear Complexity* (arXiv 2110.11945).

    Args:
        q (Tensor): (B, h, M, d).
        k (Tensor): (B, h, K, d).

    Returns:
        Tensor: (B, h, M, K), values in [0, 1]. Half precision is computed and
        returned in float32: a squared norm overflows float16. The diagonal is
        exactly 1 where ``k`` is ``q`` itself. The gradient can be taken once, not
        twice.
    """
    with autocast_disabled(q):
        return _GaussianKernel.apply(*at_least_float32(q, k), q is k)


class _GaussianKernel(Function):
    """In place where PyTorch's own graph would keep a matrix for each step."""

    @staticmethod
    def forward(ctx, q, k, same):
        half_square_q = q.square().sum(-1, keepdim=True) / 2
        half_square_k = k.square().sum(-1).unsqueeze(-2) / 2
        exponents = (q @ k.mT).sub_(half_square_q).sub_(half_square_k)
        # rounding can make a distance negative
        kernel = exponents.clamp_(max=0).exp_()
        if same:  # at large norms rounding would make it anything below 1
            kernel.diagonal(dim1=-2, dim2=-1).fill_(1)
        ctx.save_for_backward(q, k, kernel)
        return kernel

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        q, k, kernel = ctx.saved_tensors
        with autocast_disabled(grad):
            s = grad * kernel
            grad_q = s @ k - s.sum(-1, keepdim=True) * q
            grad_k = s.mT @ q - s.sum(-2).unsqueeze(-1) * k
        return grad_q, grad_k, None


def gaussian_product(q, k, v):
    """``gaussian_kernel(q, k) @ v`` without ever holding the kernel matrix.

    It is computed in blocks, forward and backward: time grows with M * K,
    memory with M + K. The gradient can be taken once, not twice.

    Triton kernels do it where they can run, plain PyTorch elsewhere; the
    environment variable ``MMLINATTN_KERNELS`` forces ``triton`` or ``torch``.

    Args:
        q (Tensor): (B, h, M, d).
        k (Tensor): (B, h, K, d).
        v (Tensor): (B, h, K, e).

    Returns:
        Tensor: (B, h, M, e), sums and result in float32 for half precision. The
        kernels multiply it as it is, PyTorch as float32.

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
            'q, k and v must be (B, h, M, d), (B, h, K, d) and (B, h, K, e), '
            f'got {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}'
        )
    with autocast_disabled(q):
        implementation = pick_implementation(q, k, v)
        if implementation is streaming:
            q, k, v = at_least_float32(q, k, v)
        return _GaussianProduct.apply(q, k, v, implementation)


def pick_implementation(*tensors):
    """The module whose functions compute the products of these tensors."""
    choice = os.environ.get('MMLINATTN_KERNELS', 'auto')
    if choice not in ('auto', 'triton', 'torch'):
        raise ValueError(
            f"MMLINATTN_KERNELS must be 'auto', 'triton' or 'torch', got {choice!r}"
        )
    if choice != 'torch' and kernels.available(*tensors):
        from .kernels import gaussian  # imports Triton

        return gaussian
    if choice == 'triton':
        raise RuntimeError(
            'MMLINATTN_KERNELS is triton, but the kernels need Triton 3, an '
            'NVIDIA GPU of compute capability 8.0, float32 or less and a head '
            f'dim of at most {kernels.MAX_DIM}; got {tensors[0].dtype} on '
            f'{tensors[0].device} with shapes '
            f'{[tuple(x.shape) for x in tensors]}'
        )
    return streaming


class _GaussianProduct(Function):
    @staticmethod
    def forward(ctx, q, k, v, implementation):
        ctx.save_for_backward(q, k, v)
        ctx.implementation = implementation
        return implementation.gaussian_product(q, k, v)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        inputs = ctx.saved_tensors
        with autocast_disabled(grad):
            grads = ctx.implementation.gaussian_product_grad(*inputs, grad)
        return (*(g.to(x.dtype) for g, x in zip(grads, inputs)), None)
