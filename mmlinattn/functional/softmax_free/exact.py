"""Exact attention with the Gaussian kernel, which SOFT factorizes.

Legend: B batch, h heads, M queries, N keys, d head dim, e channels of values.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..precision import at_least_float32, autocast_disabled
from .kernel import gaussian_product, product_dtype


def gaussian_attention(
    q: Tensor, k: Tensor, v: Tensor, softmax: bool = False
) -> Tensor:
    r"""Compute attention with the whole kernel matrix, :math:`S V` or :math:`\sigma(S)
    V`.

    :math:`S_{ij} = \exp(-\|q_i - k_j\|^2 / 2)`, and :math:`\sigma` is the softmax over
    a row of S (*SOFT*, arXiv 2110.11945, Section 3.1 and Appendix D: networks with
    either did not converge).

    Time grows with M * N, memory with M + N, because neither matrix is formed. Powers
    of a Gaussian kernel's entries are the kernel of longer tokens,
    :math:`S_{ij}^n = \exp(-\|\sqrt n q_i - \sqrt n k_j\|^2 / 2)`, so that the softmax

    .. math:: \sum_j e^{S_{ij}} v_j \Big/ \sum_j e^{S_{ij}}, \quad
        e^{S_{ij}} = \sum_{n \ge 0} \frac{1}{n!} S_{ij}^n

    takes one :func:`gaussian_product` a term. No entry of S is above 1: ten terms reach
    the rounding of float32, eighteen that of float64.

    Args:
        q (Tensor): Queries, divided by :math:`d^{1/4}`, (B, h, M, d).
        k (Tensor): Keys on the same scale, (B, h, N, d); SOFT's are its queries.
        v (Tensor): Values, (B, h, N, e).
        softmax (bool): Takes the softmax of S.

    Returns:
        Tensor: (B, h, M, e), in the dtype of ``v``; :func:`~.kernel.product_dtype` says
        in what it is computed. Without the softmax it can be N times the values, beyond
        float16.
    """
    with autocast_disabled(q):
        output_dtype = v.dtype
        dtype = product_dtype(q, k, v)
        q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
        if not softmax:
            return gaussian_product(q, k, v).to(output_dtype)
        v = pad(v, (0, 1), value=1.0)  # the last column becomes the row sums
        out = at_least_float32(v)[0].sum(-2, keepdim=True)  # the term of n = 0
        for n in range(1, 19 if dtype == torch.float64 else 11):
            product = gaussian_product(n**0.5 * q, n**0.5 * k, v)
            out = out + product / math.factorial(n)
        return (out[..., :-1] / out[..., -1:]).to(output_dtype)
