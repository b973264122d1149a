r"""The Gaussian kernel of softmax-free attention, and products with it.

With :math:`a' = (a, -|a|^2/2, 1)` and :math:`b' = (b, 1, -|b|^2/2)` the logarithm of
the kernel is an inner product, :math:`a' \cdot b' = -|a - b|^2/2`. So softmax attention
of queries a', keys b' and values v is a product with the kernel, divided by its row
sums z. One more key, the *sink*, undoes the division. Its logit is 0 for all queries,
its value is 1 in a column of its own, where the others have 0. The result has the
columns :math:`K v / (1 + z)` and :math:`1 / (1 + z)`, and their ratio is the product.

Legend: B batch, h heads, M rows, N columns of the kernel K, d head dim, e channels of
values, w width of queries, keys and values of the softmax attention.
"""

import math
from collections.abc import Callable
from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from ..maps import unflatten
from ..precision import at_least_float32, autocast_disabled, is_half, rounded_to
from ..tracing import constant_when_compiled, is_exported, is_traced

Product = Callable[[Tensor], Tensor]

# The sink's value: 1 / (1 + z) is subnormal in float16 where many tokens are alike.
_SINK = 2.0**10
# By dtype: the number of columns that add up to -|a|^2/2 without losing a digit, and
# the largest norm of a token. Beyond that, rounding errors of the logits would grow
# without limit, and in float16 |a|^2/2 would overflow. Natural images stay below 20.
_LIMITS = {
    torch.float16: (2, 250.0),
    torch.bfloat16: (3, 250.0),
    torch.float32: (1, 1e3),
    torch.float64: (1, 1e6),
}
# This many blocks of 64 queries, with at least this many keys each, fill a GPU.
_BLOCKS, _QUERIES, _KEYS, _MOST_CHUNKS = 256, 64, 1024, 32
_SMALL = 2**18  # entries of a kernel; smaller ones stay in a CPU's cache, and win
_PIECES = 8  # of an exported product, which holds one piece of the kernel at a time


def gaussian_kernel(q: Tensor, k: Optional[Tensor] = None) -> Tensor:
    r"""Compute the Gaussian kernel :math:`\exp(-\|q_i - k_j\|^2 / 2)`.

    With q and k divided by :math:`d^{1/4}` this is the kernel of *SOFT:
    Softmax-free Transformer with Linear Complexity* (arXiv 2110.11945).

    Args:
        q (Tensor): (..., M, d).
        k (Tensor, optional): (..., N, d). Default: q itself, with a diagonal of
            exactly 1; at large norms, rounding would make it less.

    Returns:
        Tensor: (..., M, N), values in [0, 1]. Half precision is computed and
        returned in float32: a squared norm overflows float16.
    """
    with autocast_disabled(q):
        is_own = k is None
        q, k = at_least_float32(q, q if k is None else k)
        dtype = q.dtype
        if rounded_to(q):
            q, k = q.double(), k.double()
        q, k = _centered(q, None if is_own else k)
        of_q = _minus_half_square(q)
        of_k = of_q if is_own else _minus_half_square(k)
        # in place: autograd would keep a matrix for each step
        exponents = (q @ k.transpose(-2, -1)).add_(of_q).add_(of_k.transpose(-2, -1))
        return _exponential(exponents, 0.0 if is_own else None).to(dtype)


def _exponential(exponents: Tensor, ridge: Optional[float] = None) -> Tensor:
    """Return the kernel of exponents, which it overwrites; 1 + ridge on the diagonal,
    if given for the kernel of tokens with themselves."""
    with torch.no_grad():  # rounding of distances has no gradient
        exponents.clamp_(max=0)
        if ridge is not None and is_exported():  # ONNX has no view of a diagonal
            exponents.mul_(1 - torch.eye(*exponents.shape[-2:]).to(exponents))
        elif ridge is not None:
            exponents.diagonal(dim1=-2, dim2=-1).fill_(math.log1p(ridge))
    return exponents.exp_()


def gaussian_product(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute ``gaussian_kernel(q, k) @ v`` without the kernel matrix in memory.

    It is a fused softmax attention, see the module's docstring: time grows with M * N,
    memory with M + N. Errors of float32 are 3e-7 to 3e-6 of the result's norm for
    natural images, and grow with the tokens' squared distance to their mean.

    Args:
        q (Tensor): (B, h, M, d).
        k (Tensor): (B, h, N, d).
        v (Tensor): (B, h, N, e).

    Returns:
        Tensor: (B, h, M, e), in float32 for half precision; see :func:`product_dtype`.
    """
    with autocast_disabled(q):
        dtype = product_dtype(q, k, v)
        product, _ = kernel_products(q.to(dtype), k.to(dtype))
        return product(v.to(dtype))


def kernel_products(q: Tensor, k: Tensor) -> tuple[Product, Product]:
    """Products with a kernel matrix K of (M, N) and with its transpose.

    Args:
        q (Tensor): (B, h, M, d).
        k (Tensor): (B, h, N, d).

    Returns:
        tuple[Callable]: K v of v (B, h, N, e), and K^T y of y (B, h, M, e); all in one
            dtype, results of half precision in float32. Call them without autocast,
            which would round their factors.
    """
    multiply: Callable[[Tensor, Tensor, Tensor], Tensor] = _product_in_pieces
    if not is_exported():
        if q.is_cpu and q.size(2) * k.size(2) <= _SMALL and not rounded_to(q):
            kernel = gaussian_kernel(q, k)
            return lambda v: kernel @ v, lambda y: kernel.mT @ y
        multiply, (q, k) = _fused_product, _lifted(q, k)
    return lambda v: multiply(q, k, v), lambda y: multiply(k, q, y)


def landmark_kernels(
    landmarks: Tensor, q: Tensor, ridge: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return a + ridge * I, (B, h, m, m), and the transpose of P, (B, h, N, m), of
    landmarks (B, h, m, d) and queries (B, h, N, d); and what P is computed of, the
    queries with the landmarks' mean as the origin, and their norms (B, h, N, 1)."""
    m, num_queries = landmarks.size(2), q.size(2)
    with autocast_disabled(q):
        # one tensor of both takes fewer operators
        x = torch.cat(at_least_float32(landmarks, q), -2)
        x = x.sub_(x.narrow(-2, 0, m).detach().mean(-2, keepdim=True))
        norms = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        # a tracer's number of landmarks, and so the ridge, may be a symbol
        traced = is_traced()
        kernel = kernel_by_norms(x, norms, m, None if traced else ridge)
        a, p = kernel.split([m, num_queries], -2)
        if traced:
            eye = torch.eye(m, device=a.device, dtype=a.dtype)
            a = a * (1 - eye) + (1 + ridge) * eye
        return a, p, x.narrow(-2, m, num_queries), norms.narrow(-2, m, num_queries)


def kernel_by_norms(
    x: Tensor, norms: Tensor, num_columns: Any, ridge: Optional[float] = 0.0
) -> Tensor:
    """Return the kernel of tokens (..., M, d), of norms (..., M, 1), and the first N of
    them, (..., M, N); on its diagonal 1 + ridge, unless that is None."""
    dtype = x.dtype
    if rounded_to(x):
        x, norms = x.double(), norms.double()
    columns, of_columns = x.narrow(-2, 0, num_columns), norms.narrow(-2, 0, num_columns)
    exponents = x @ columns.transpose(-2, -1)
    for y in (norms, of_columns.transpose(-2, -1)):
        exponents = exponents.addcmul_(y, y, value=-0.5)
    return _exponential(exponents, ridge).to(dtype)


def product_dtype(*tensors: Tensor) -> torch.dtype:
    """Return the dtype that products with the kernel are computed in.

    It is half precision if all tensors have it, on a GPU, and no gradient is wanted: a
    result has up to twice the error of its rounding, a gradient of the landmarks would
    have eight times that. Elsewhere it is float32 or float64.
    """
    first = tensors[0]
    same_dtype = all(tensor.dtype == first.dtype for tensor in tensors)
    if same_dtype and first.is_cuda and is_half(first) and not torch.is_grad_enabled():
        return first.dtype
    double = any(tensor.dtype == torch.float64 for tensor in tensors)
    return torch.float64 if double else torch.float32


def _lifted(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """q' and k' of the module's docstring, each with a vector of zeros at the end, the
    sink: (B, h, M + 1, w) and (B, h, N + 1, w)."""
    squares, farthest = _limits_of(q.dtype)
    farthest = farthest / q.size(-1) ** 0.5
    if is_half(q):  # a shift would round the tokens
        q, k = q.clamp(-farthest, farthest), k.clamp(-farthest, farthest)
    else:
        q, k = _centered(q, k)
        with torch.no_grad():  # natural images stay within the limits
            q.clamp_(-farthest, farthest)
            k.clamp_(-farthest, farthest)
    of_q, of_k = _minus_half_squares(q, squares), _minus_half_squares(k, squares)
    rows = torch.cat((q, of_q, torch.ones_like(of_q)), -1)
    columns = torch.cat((k, torch.ones_like(of_k), of_k), -1)
    # kernels of GPUs need a multiple of 8
    missing = -rows.size(-1) % 8 if q.is_cuda else 0
    return F.pad(rows, (0, missing, 0, 1)), F.pad(columns, (0, missing, 0, 1))


def _fused_product(
    rows: Tensor, columns: Tensor, v: Tensor, chunks: Optional[int] = None
) -> Tensor:
    """Return the product by softmax attention, of the results of :func:`_lifted`. On a
    GPU, keys come in chunks whose results add up."""
    (num_heads, num_keys, e), width = v.shape[1:], rows.size(-1)
    if width < e + 1:
        width = -(-(e + 1) // 8) * 8
        rows, columns = (F.pad(x, (0, width - x.size(-1))) for x in (rows, columns))
    queries, keys = rows[:, :, :-1], columns
    if chunks is None:
        chunks = _count_chunks(queries, num_keys) if v.is_cuda else 1
    if chunks > 1:
        # padding has no values, and adds to the row sum like the sink
        filled = (0, 0, 0, -num_keys % chunks)
        keys, v = F.pad(keys[:, :, :-1], filled), F.pad(v, filled)
        keys, v = (x.unflatten(2, (chunks, -1)).flatten(0, 1) for x in (keys, v))
        keys = F.pad(keys, (0, 0, 0, 1))
        queries = queries.flatten(0, 1).unsqueeze(1).expand(-1, chunks, -1, -1)
    v = F.pad(v, (0, width - e, 0, 1))
    with torch.no_grad():
        v[..., -1, e] = _SINK
    out = F.scaled_dot_product_attention(queries, keys, v, scale=1.0)
    (out,) = at_least_float32(out)
    product = out[..., :e] * (_SINK / out[..., e : e + 1])
    return product.sum(1).unflatten(0, (-1, num_heads)) if chunks > 1 else product


@constant_when_compiled
def _limits_of(dtype: torch.dtype) -> tuple[int, float]:
    return _LIMITS[dtype]


def _minus_half_squares(x: Tensor, count: int) -> Tensor:
    """-|x|^2 / 2, (..., d) to (..., count): numbers of x's dtype that add up to it."""
    rest = _minus_half_square(*at_least_float32(x))
    parts = []
    for _ in range(count):
        parts.append(rest.to(x.dtype))
        rest = rest - parts[-1]
    return torch.cat(parts, -1)


def _minus_half_square(x: Tensor) -> Tensor:
    return x.square().sum(-1, keepdim=True) * -0.5


def _centered(q: Tensor, k: Optional[Tensor]) -> tuple[Tensor, Tensor]:
    """Return both shifted by k's mean, so that less cancels in the logits; k is q
    without one."""
    center = (q if k is None else k).detach().mean(-2, keepdim=True)
    centered = q - center
    return centered, centered if k is None else k - center


def _count_chunks(queries: Tensor, num_keys: int) -> int:
    """Return the number of chunks of keys that fills a GPU."""
    blocks = queries.size(0) * queries.size(1) * -(-queries.size(2) // _QUERIES)
    return max(1, min(_BLOCKS // blocks, num_keys // _KEYS, _MOST_CHUNKS))


def _product_in_pieces(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return the product, with the kernel of some of the queries at a time."""
    num_queries = q.size(2)
    q, k = _centered(q, k)
    of_q, of_k = _minus_half_square(q), _minus_half_square(k)
    queries = torch.cat((q, of_q, torch.ones_like(of_q)), -1)
    keys = torch.cat((k, torch.ones_like(of_k), of_k), -1).transpose(-2, -1)
    # equal pieces, the last one padded
    queries = F.pad(queries, (0, 0, 0, -num_queries % _PIECES))
    queries = unflatten(queries, 2, (_PIECES, queries.size(2) // _PIECES))
    products = [(x @ keys).clamp(max=0).exp() @ v for x in queries.unbind(2)]
    return torch.cat(products, 2)[:, :, :num_queries]
