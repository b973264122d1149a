"""The Gaussian kernel of softmax-free attention, and products with it.

Legend: B batch, h heads, M rows, K columns, d head dim, e channels of values.
"""
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from . import streaming
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
        returned in float32: a squared norm overflows float16.
    """
    with autocast_disabled(q):
        q, k = at_least_float32(q, k)
        half_square_q = q.square().sum(-1, keepdim=True) / 2
        half_square_k = k.square().sum(-1).unsqueeze(-2) / 2
        # rounding can make a distance negative
        return (q @ k.mT - half_square_q - half_square_k).clamp(max=0).exp()


def gaussian_product(q, k, v):
    """``gaussian_kernel(q, k) @ v`` without ever holding the kernel matrix.

    It is computed in blocks, forward and backward: time grows with M * K,
    memory with M + K. The gradient can be taken once, not twice.

    Args:
        q (Tensor): (B, h, M, d).
        k (Tensor): (B, h, K, d).
        v (Tensor): (B, h, K, e).

    Returns:
        Tensor: (B, h, M, e). Half precision is computed and returned in
        float32.
    """
    with autocast_disabled(q):
        return _GaussianProduct.apply(*at_least_float32(q, k, v))


class _GaussianProduct(Function):

    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        return streaming.gaussian_product(q, k, v)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        with autocast_disabled(grad):
            return streaming.gaussian_product_grad(*ctx.saved_tensors, grad)
