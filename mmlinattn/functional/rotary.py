"""Rotary positions on a map.

Legend: (H, W) map, N = H * W tokens + extra ones, d channels, K = d // 4.
"""

from collections.abc import Sequence
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from .maps import unflatten
from .precision import at_least_float32, autocast_disabled
from .tokens import products_with_one, sum_over_tokens, to_every_token
from .tracing import can_read_values, is_exported

# added to the normalizer, as in the official code
ROTARY_EPS = 1e-6
# Factors of the latest sizes and places, the latest use last. They depend on no
# parameter, and take at most 64 MiB in float32.
_KEPT: dict[tuple, Tensor] = {}
_MOST_KEPT, _LARGEST_KEPT = 8, 2**20
_LOCK = Lock()


def rotate(x: Tensor, hw_shape: Sequence[Any], steps: int) -> Tensor:
    r"""Turn pairs of channels by angles that grow with a token's row and column.

    The first K pairs turn by row :math:`\cdot\,\omega_j`, the next K by column
    :math:`\cdot\,\omega_j`, with :math:`\omega_j = 10000^{-j / steps}`; a pair that is
    left over does not turn (*RoFormer*, arXiv 2104.09864; on maps in *MLLA*, arXiv
    2405.16605, and *RALA*, arXiv 2411.07635). Products of turned queries and keys
    depend on distances only.

    Args:
        x (Tensor): (..., N, d), d even. Extra tokens come first and are not turned.
            Half precision is computed in float32.
        hw_shape (Sequence[int]): (H, W).
        steps (int): Steps from frequency 1 to 1 / 10000: K leaves out the last one,
            K - 1 has it.

    Returns:
        Tensor: As x, float32 or more.
    """
    (turned,) = _rotate_alike((x,), hw_shape, steps)
    return turned


def rotate_both(
    q: Tensor, k: Tensor, hw_shape: Sequence[Any], steps: int
) -> tuple[Tensor, Tensor]:
    """:func:`rotate` of queries and keys of one shape, by the same table."""
    turned_q, turned_k = _rotate_alike((q, k), hw_shape, steps)
    return turned_q, turned_k


def turned_heads(
    qk: Tensor, hw_shape: Sequence[Any], num_heads: int
) -> tuple[Tensor, Tensor]:
    """:func:`rotate` all C channels of queries and keys together, in C // 4 steps, and
    split heads off: (B, N, 2 C) to (B, h, N, d) each."""
    dims = qk.size(-1) // 2
    pairs = unflatten(qk, -1, (2, dims)).transpose(1, 2)
    turned = unflatten(rotate(pairs, hw_shape, dims // 4), -1, (num_heads, -1))
    q, k = turned.permute(1, 0, 3, 2, 4).unbind()
    return q, k


def _rotate_alike(
    tensors: Sequence[Tensor], hw_shape: Sequence[Any], steps: int
) -> list[Tensor]:
    with autocast_disabled(tensors[0]):
        tensors = at_least_float32(*tensors)
        if all(_has_complex_view(x) for x in tensors):
            factors = _factors(tensors[0], hw_shape, steps)
            return [_multiply(x, factors) for x in tensors]
        cos, sin = _cos_sin(tensors[0], hw_shape, steps)
        return [_turn(x, cos, sin) for x in tensors]


def _has_complex_view(x: Tensor) -> bool:
    """Return whether pairs of channels are complex numbers for PyTorch."""
    if not can_read_values(x) or x.device.type not in ('cpu', 'cuda'):
        return False
    numbers = (*x.stride()[:-1], x.storage_offset())
    return x.stride(-1) == 1 and not any(number % 2 for number in numbers)


def _factors(x: Tensor, hw_shape: Sequence[Any], steps: int) -> Tensor:
    """Return complex numbers (N, d / 2) that turn the pairs of x's channels.

    Blocks of a stage share them.
    """
    # a stream does not wait for what another one computes; tensors of inference mode
    # can't be saved for a backward pass
    is_inference = torch.is_inference_mode_enabled()
    stream = torch.cuda.current_stream(x.device).cuda_stream if x.is_cuda else None
    key = (*hw_shape, *x.shape[-2:], steps, x.dtype, x.device, stream, is_inference)
    with _LOCK:
        factors = _KEPT.pop(key, None)
        if factors is None:
            cos, sin = _cos_sin(x, hw_shape, steps)
            factors = torch.complex(cos[:, ::2], sin[:, 1::2])
        # not those of a subclass, such as a tensor without values
        if type(factors) is Tensor and factors.numel() <= _LARGEST_KEPT:
            _KEPT[key] = factors
        while len(_KEPT) > _MOST_KEPT:
            del _KEPT[next(iter(_KEPT))]
    return factors


def _multiply(x: Tensor, factors: Tensor) -> Tensor:
    numbers = torch.view_as_complex(unflatten(x, -1, (-1, 2)))
    return torch.view_as_real(numbers * factors).flatten(-2)


def _cos_sin(x: Tensor, hw_shape: Sequence[Any], steps: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of the angles of x's channels, (N, d) each; the sine of
    the first channel of a pair has the other sign."""
    options: Any = dict(dtype=x.dtype, device=x.device)
    (height, width), dims = hw_shape, x.size(-1)
    frequencies = 10000 ** (torch.arange(dims // 4, **options) / -steps)
    pairs = torch.stack((-frequencies, frequencies), -1).flatten()
    half, left_over = dims // 4 * 2, dims % 4
    rows = torch.arange(height, **options)[:, None, None]
    rows = rows * pad(pairs, (0, half + left_over))
    columns = torch.arange(width, **options)[:, None] * pad(pairs, (half, left_over))
    # no channel turns by both
    cos = (rows.cos() * columns.cos()).flatten(0, 1)
    sin = (rows.sin() + columns.sin()).flatten(0, 1)
    num_extra = x.size(-2) - cos.size(0)
    if is_exported() or num_extra:
        cos = pad(cos, (0, 0, num_extra, 0), value=1.0)
        sin = pad(sin, (0, 0, num_extra, 0))
    return cos, sin


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    swapped = unflatten(x, -1, (-1, 2)).flip(-1).flatten(-2)
    return x * cos + swapped * sin


def rotary_linear_attention(
    q: Tensor, k: Tensor, v: Tensor, turned_q: Tensor, turned_k: Tensor
) -> Tensor:
    r"""Compute linear attention with positions in its product and not in its
    normalizer.

    :math:`\frac{R(Q_i)^T \sum_j R(K_j) V_j^T}{Q_i^T \sum_j K_j + 10^{-6} N}`, so a row
    of weights need not sum to 1 and may have negative ones (*MLLA*, arXiv 2405.16605).

    Args:
        q, k (Tensor): Features, (B, h, N, d), nonnegative, float32 or more.
        v (Tensor): (B, h, N, d), the same dtype.
        turned_q, turned_k (Tensor): R of both, from :func:`rotate_both`.

    Returns:
        Tensor: (B, h, N, d).
    """
    # both over N: half of the divisions
    sums = products_with_one(q, k.sum(-2, keepdim=True))  # (B, h, N, 1)
    context = sum_over_tokens(turned_k, v)
    return to_every_token(turned_q, context) / (sums + ROTARY_EPS * k.size(-2))
