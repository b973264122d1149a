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

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from ..maps import unflatten
from ..precision import at_least_float32, autocast_disabled, is_half, rounded_to
from ..tracing import constant_when_compiled, is_exported

# The sink's value, as 1 / (1 + z) is subnormal in float16 where many tokens are alike.
_SINK = 2.0**10
# Logit of a key without weight.
_NOWHERE = -3e4
# By dtype: columns that -|a|^2/2 is the sum of, so that no digit of it gets lost, and
# the largest norm of a token. Beyond that, rounding errors of the logits would grow
# without limit, and in float16 |a|^2/2 would overflow. Natural images stay below 20.
_LIMITS = {
    torch.float16: (2, 250.0),
    torch.bfloat16: (3, 250.0),
    torch.float32: (1, 1e3),
    torch.float64: (1, 1e6),
}
# A GPU wants this many blocks of 64 queries, of at least this many keys each.
_BLOCKS, _QUERIES, _KEYS, _MOST_CHUNKS = 256, 64, 1024, 32
_PIECES = 8  # of an exported product, which holds the kernel of one


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
        returned in float32: a squared norm overflows float16.
    """
    is_own = k is None
    with autocast_disabled(q):
        q, k = at_least_float32(q, q if k is None else k)
        dtype = q.dtype
        if rounded_to(q):
            q, k = q.double(), k.double()
        q, k = _centered(q, k)
        # in place: autograd would keep a matrix for each step
        exponents = (q @ k.transpose(-2, -1)).add_(_minus_half_square(q))
        exponents = exponents.add_(_minus_half_square(k).transpose(-2, -1))
        with torch.no_grad():  # what rounding did to distances has no gradient
            exponents.clamp_(max=0)
            if is_own and is_exported():  # ONNX has no view of a diagonal
                exponents.mul_(1 - torch.eye(q.size(-2)).to(q))
            elif is_own:
                exponents.diagonal(dim1=-2, dim2=-1).zero_()
        return exponents.exp_().to(dtype)


def gaussian_product(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Computes ``gaussian_kernel(q, k) @ v`` without the kernel matrix in memory.

    It is PyTorch's fused softmax attention, forward and backward, as the module's
    docstring says: time grows with M * N, memory with M + N. Errors of float32 are
    3e-7 to 3e-6 of the result's norm for tokens of natural images, and grow with their
    squared distance to their mean.

    Args:
        q (Tensor): (B, h, M, d).
        k (Tensor): (B, h, N, d).
        v (Tensor): (B, h, N, e).

    Returns:
        Tensor: (B, h, M, e), in float32 for half precision; see :func:`product_dtype`.

    Raises:
        ValueError: If the shapes do not fit.
    """
    check_shapes(
        q, k, v, 'q, k and v must be (B, h, M, d), (B, h, N, d) and (B, h, N, e)'
    )
    with autocast_disabled(q):
        dtype = product_dtype(q, k, v)
        q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
        if is_exported():
            return _product_in_pieces(q, k, v)
        chunks = 1
        if q.is_cuda:  # a CPU has enough to do with one
            chunks = _count_chunks(q.size(0) * q.size(1), q.size(2), k.size(2))
        return _fused_product(q, k, v, chunks)


def check_shapes(q: Tensor, k: Tensor, v: Tensor, wanted: str) -> None:
    """Raises an error for shapes that no product with a kernel can be taken of."""
    if is_exported():
        return
    fits = (
        q.dim() == k.dim() == v.dim() == 4
        and q.shape[:2] == k.shape[:2]
        and q.size(-1) == k.size(-1)
        and k.shape[:3] == v.shape[:3]
        and 0 not in (*q.shape, *k.shape)
    )
    if not fits:
        shapes = ', '.join(str(tuple(x.shape)) for x in (q, k, v))
        raise ValueError(f'{wanted}, got {shapes}')


def product_dtype(*tensors: Tensor) -> torch.dtype:
    """What products with the kernel are computed in.

    That is half precision where all tensors have it, on a GPU, and no gradient is
    wanted: a result has up to twice the error then that its rounding has, a gradient of
    the landmarks eight times. Elsewhere it is float32 or float64.
    """
    first = tensors[0]
    if (
        first.is_cuda
        and is_half(first)
        and not torch.is_grad_enabled()
        and all(x.dtype == first.dtype for x in tensors)
    ):
        return first.dtype
    widened = at_least_float32(*tensors)
    double = any(x.dtype == torch.float64 for x in widened)
    return torch.float64 if double else torch.float32


def _fused_product(q: Tensor, k: Tensor, v: Tensor, chunks: int = 1) -> Tensor:
    """The product by softmax attention, with keys in chunks whose results add up."""
    squares, farthest = _limits_of(q.dtype)
    d, e = q.size(-1), v.size(-1)
    width = max(d + 2 * squares, e + 1)
    if q.is_cuda:  # its kernels want a multiple of 8
        width = -(-width // 8) * 8
    if not is_half(q):  # there, a shift would round the tokens
        q, k = _centered(q, k)
    farthest = farthest / d**0.5
    q, k = q.clamp(-farthest, farthest), k.clamp(-farthest, farthest)
    ones = q.new_ones(squares)
    queries = _columns((q, _minus_half_squares(q, squares), ones), width)
    keys = _columns((k, ones, _minus_half_squares(k, squares)), width)
    v = F.pad(v, (0, width - e))
    sink = q.new_zeros(width)
    sink[e] = _SINK
    if chunks > 1:
        outside, missing = q.shape[:2], -k.size(-2) % chunks
        nowhere = q.new_zeros(width)
        nowhere[d + squares] = _NOWHERE  # where every query has 1
        keys = _with_rows(keys, nowhere, missing)
        v = F.pad(v, (0, 0, 0, missing))
        keys, v = (x.unflatten(2, (chunks, -1)).flatten(0, 1) for x in (keys, v))
        queries = queries.flatten(0, 1).unsqueeze(1).expand(-1, chunks, -1, -1)
    keys, v = F.pad(keys, (0, 0, 0, 1)), _with_rows(v, sink)
    out = F.scaled_dot_product_attention(queries, keys, v, scale=1.0)
    (out,) = at_least_float32(out)
    product = out[..., :e] * (_SINK / out[..., e : e + 1])
    return product.sum(1).unflatten(0, outside) if chunks > 1 else product


@constant_when_compiled
def _limits_of(dtype: torch.dtype) -> tuple[int, float]:
    return _LIMITS[dtype]


def _columns(parts: tuple[Tensor, ...], width: int) -> Tensor:
    """Vectors side by side, filled up with zeros, (B, h, N, width)."""
    shape = parts[0].shape[:-1]
    missing = width - sum(x.size(-1) for x in parts)
    parts = *parts, parts[0].new_zeros(missing)
    return torch.cat([x.expand(*shape, -1) for x in parts], -1)


def _with_rows(x: Tensor, row: Tensor, count: int = 1) -> Tensor:
    """(B, h, N, w) with more vectors at the end, all equal."""
    return torch.cat((x, row.expand(*x.shape[:2], count, -1)), -2)


def _minus_half_squares(x: Tensor, count: int) -> Tensor:
    """-|x|^2 / 2, (..., d) to (..., count): numbers of x's dtype that add up to it."""
    rest = _minus_half_square(*at_least_float32(x))
    parts = []
    for _ in range(count):
        parts.append(rest.to(x.dtype))
        rest = rest - parts[-1]
    return torch.cat(parts, -1)


def _minus_half_square(x: Tensor) -> Tensor:
    return -x.square().sum(-1, keepdim=True) / 2


def _centered(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """Both shifted by k's mean, so that less cancels in the logits."""
    center = k.detach().mean(-2, keepdim=True)
    return q - center, k - center


def _count_chunks(num_heads: int, num_queries: int, num_keys: int) -> int:
    """How many chunks of keys give a GPU enough to do."""
    blocks = num_heads * -(-num_queries // _QUERIES)
    return max(1, min(_BLOCKS // blocks, num_keys // _KEYS, _MOST_CHUNKS))


def _product_in_pieces(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The product by the kernel of some of the queries after the other."""
    num_queries = q.size(2)
    q, k = _centered(q, k)
    of_q, of_k = _minus_half_square(q), _minus_half_square(k)
    queries = torch.cat((q, of_q, torch.ones_like(of_q)), -1)
    keys = torch.cat((k, torch.ones_like(of_k), of_k), -1).transpose(-2, -1)
    # in equal pieces, the last one filled up
    queries = F.pad(queries, (0, 0, 0, -num_queries % _PIECES))
    queries = unflatten(queries, 2, (_PIECES, queries.size(2) // _PIECES))
    products = [(x @ keys).clamp(max=0).exp() @ v for x in queries.unbind(2)]
    return torch.cat(products, 2)[:, :, :num_queries]
