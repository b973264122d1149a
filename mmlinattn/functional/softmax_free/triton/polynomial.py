"""Newton-Raphson's inverse as a polynomial in A, on tensor cores.

Computes what :mod:`mmlinattn.functional.softmax_free.polynomial` says. Matrices and
columns are sums of two float16 numbers, times ``_UNIT``, which keep 22 bits. A product
leaves out that of both small parts, and where errors count less, all with the small
parts of matrices. Sums are float32.

A kernel makes parts; one makes a parabola of a symmetric matrix from its blocks on one
side of the diagonal; one multiplies columns, and adds to them. Matrices are padded with
zeros to a multiple of 64 rows and columns, so the loops have no masks.

Legend: n matrices, m landmarks, M the same padded, k columns, E the same padded,
K parabolas.
"""

import math

import torch
import triton
import triton.language as tl

from ..polynomial import ACCURACIES, polynomial_within
from . import MAX_DIM
from .sweep import _capability, _padded

_UNIT = tl.constexpr(2.0**15)
_PADDING = 64
_SAFE_STAGES = tuple(map(int, triton.__version__.split('.')[:2])) >= (3, 7)
# Rows and columns of a block of a parabola, and how deep its products are at a time;
# rows of a block of columns. The padding is a multiple of depths and of these rows.
_PARABOLA_BLOCK = dict(BLOCK=128, DEPTH=32, num_warps=8, num_stages=3)
_COLUMN_BLOCK = dict(ROWS=64, DEPTH=64, num_stages=3)

_LIBRARY = torch.library.Library('mmlinattn', 'FRAGMENT')
_LIBRARY.define(
    'polynomial_powers(Tensor a, Tensor scale, int num_iters, int parts) -> Tensor[]'
)
_LIBRARY.define(
    'apply_polynomial(Tensor x, Tensor scale, Tensor[] powers, int num_iters, '
    'int parts) -> Tensor'
)


@triton.jit(do_not_specialize=['rows', 'cols'])
def _split_kernel(
    x,
    factor,
    high,
    low,
    x_n,
    x_r,
    factor_n,
    factor_c,
    rows,
    cols,
    padded_rows,
    padded_cols,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """Parts of x times a factor for each matrix or each column, padded with zeros."""
    blocks = tl.cdiv(padded_cols, COLS)
    matrix = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) // blocks * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(0) % blocks * COLS + tl.arange(0, COLS)
    inside = (i < rows)[:, None] & (j < cols)[None, :]
    place = matrix * x_n + i.to(tl.int64)[:, None] * x_r + j[None, :]
    scale = tl.load(factor + matrix * factor_n + j * factor_c, mask=j < cols, other=0.0)
    value = tl.load(x + place, mask=inside, other=0.0) * (scale * _UNIT)[None, :]
    first, second = _split(value)
    i, j = i[:, None], j[None, :]
    place = matrix * padded_rows * padded_cols + i * padded_cols + j
    tl.store(high + place, first, mask=(i < padded_rows) & (j < padded_cols))
    tl.store(low + place, second, mask=(i < padded_rows) & (j < padded_cols))


@triton.jit
def _parabola_kernel(
    high, low, out_high, out_low, size, height, BLOCK: tl.constexpr, DEPTH: tl.constexpr
):
    """4 h w (1 - h w)."""
    # rows of blocks from both ends of the triangle, which have blocks + 1 together
    blocks = tl.cdiv(size, BLOCK)
    row, column = tl.program_id(0) // (blocks + 1), tl.program_id(0) % (blocks + 1)
    beyond = column - (blocks - row)
    if beyond >= 0:
        row = blocks - 1 - row
        column = beyond
    column += row
    matrix = tl.program_id(1).to(tl.int64) * size * size
    high += matrix
    low += matrix

    first = row * BLOCK + tl.arange(0, BLOCK)
    second = column * BLOCK + tl.arange(0, BLOCK)
    # rows beyond the last one are others, which nobody stores
    i = (first % size)[:, None]
    j = (second % size)[:, None]
    depth = tl.arange(0, DEPTH)[None, :]
    left, right = i * size + depth, j * size + depth
    square = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(0, size, DEPTH):
        left_high, right_high = tl.load(high + left), tl.load(high + right)
        left_low, right_low = tl.load(low + left), tl.load(low + right)
        square = tl.dot(left_low, tl.trans(right_high), square)
        square = tl.dot(left_high, tl.trans(right_low), square)
        square = tl.dot(left_high, tl.trans(right_high), square)
        left += DEPTH
        right += DEPTH

    first, second = first[:, None], second[None, :]
    inside = (first < size) & (second < size)
    place = first * size + second
    w = tl.load(high + place, mask=inside, other=0.0).to(tl.float32)
    w += tl.load(low + place, mask=inside, other=0.0).to(tl.float32)
    w = 4 * height * (w - height / _UNIT * square)
    first_part, second_part = _split(w)
    out_high += matrix
    out_low += matrix
    tl.store(out_high + place, first_part, mask=inside)
    tl.store(out_low + place, second_part, mask=inside)
    if row != column:
        place = tl.trans(second) * size + tl.trans(first)
        inside = tl.trans(inside)
        tl.store(out_high + place, tl.trans(first_part), mask=inside)
        tl.store(out_low + place, tl.trans(second_part), mask=inside)


@triton.jit(do_not_specialize=['matrices'])
def _columns_kernel(
    high,
    low,
    b,
    previous,
    x,
    out,
    matrices,
    size,
    of_product,
    of_b,
    of_previous,
    of_x,
    PARTS: tl.constexpr,
    MORE: tl.constexpr,
    ROWS: tl.constexpr,
    DEPTH: tl.constexpr,
    COLS: tl.constexpr,
):
    """A sum of the product w b, of b and, with MORE, of previous and x."""
    matrix = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    depth, column = tl.arange(0, DEPTH), tl.arange(0, COLS)[None, :]
    w = matrix * size * size + i * size + depth[None, :]
    part = matrices.to(tl.int64) * size * COLS
    columns = matrix * size * COLS
    place = columns + depth[:, None] * COLS + column
    product = tl.zeros((ROWS, COLS), tl.float32)
    for _ in range(0, size, DEPTH):
        w_high, b_high = tl.load(high + w), tl.load(b + place)
        product = tl.dot(w_high, tl.load(b + part + place), product)
        if PARTS == 2:
            product = tl.dot(tl.load(low + w), b_high, product)
        product = tl.dot(w_high, b_high, product)
        w += DEPTH
        place += DEPTH * COLS

    place = columns + i * COLS + column
    total = product * (of_product / _UNIT) + of_b * _join(b, place, part)
    if MORE:
        total += of_previous * _join(previous, place, part)
        total += of_x * _join(x, place, part)
    first, second = _split(total)
    tl.store(out + place, first)
    tl.store(out + part + place, second)


@triton.jit
def _split(x):
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def _join(x, place, part):
    return tl.load(x + place).to(tl.float32) + tl.load(x + part + place).to(tl.float32)


def polynomial_powers(a, scale, num_iters, parts):
    """The matrices that :func:`apply_polynomial` multiplies by.

    Args:
        a (Tensor): Symmetric, float32, (n, m, m).
        scale (Tensor): Brings its eigenvalues to [0, 1], (n, 1, 1).
        num_iters (int): T, 18...24.
        parts (int): 2 for float32's accuracy, 1 for that of half precision.

    Returns:
        list[Tensor]: Float16, (n, M, M): large parts of w_0 to w_K, then small parts.
    """
    return torch.ops.mmlinattn.polynomial_powers(a, scale, num_iters, parts)


def apply_polynomial(x, scale, powers, num_iters, parts):
    """Multiplies by g(A).

    Args:
        x (Tensor): Float32, (n, m, k).
        scale (Tensor): As for :func:`polynomial_powers`.
        powers (list[Tensor]): What it returned.
        num_iters, parts (int): As there.

    Returns:
        Tensor: (n, m, k).
    """
    pieces = [
        torch.ops.mmlinattn.apply_polynomial(y, scale, powers, num_iters, parts)
        for y in x.split(MAX_DIM, dim=-1)
    ]
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=-1)


def _powers(a, scale, num_iters, parts):
    heights = polynomial_within(num_iters, ACCURACIES[parts].tolerance).heights
    size = _padded_size(a.size(-1))
    w = [_half(a, a.size(0), size, size) for _ in range(2)]
    _split_parts(a, scale.view(-1, 1).expand(-1, a.size(-1)), *w)
    high, low = [w[0]], [w[1]]
    for height in heights:
        w = _parabola(*w, height)
        high.append(w[0])
        low.append(w[1])
    return high + low


def _apply(x, scale, powers, num_iters, parts):
    accuracy = ACCURACIES[parts]
    heights, coefficients = polynomial_within(num_iters, accuracy.tolerance)
    # norms of columns grow by no more than is known
    norm = torch.linalg.vector_norm(x, dim=-2)
    smallest = torch.finfo(x.dtype).tiny ** 0.5
    matrices, size, count = x.shape
    y = _half(x, 2, matrices, powers[0].size(-1), _padded(count))
    _split_parts(x, norm.clamp_min(smallest).reciprocal(), *y)
    pairs = list(zip(powers[: len(heights) + 1], powers[len(heights) + 1 :]))
    for pair, height in zip(pairs, heights):
        y = _multiply(pair, y, -height, 1.0)
    # Clenshaw's recurrence, with sums below 1
    last, (lowest, *others, highest) = pairs[-1], coefficients
    bound = sum(abs(c) * (i + 1) for i, c in enumerate(coefficients))
    unit = 2.0 ** -math.ceil(math.log2(bound))
    b, following, of_following = y, y, -unit * highest
    for i, c in enumerate(reversed(others)):
        pair = last if i >= accuracy.terms else (last[0], None)
        if i == 0:  # the highest coefficient's b is a multiple of y
            b = _multiply(pair, y, 4 * unit * highest, unit * (c - 2 * highest))
            continue
        more = following, of_following, y, unit * c
        b, following, of_following = _multiply(pair, b, 4.0, -2.0, *more), b, -1.0
    y = _multiply(last, b, 2.0, -1.0, following, -1.0, y, unit * lowest)
    gain = math.prod(4 * h for h in heights) / unit / _UNIT.value
    y = torch.add(y[0].float(), y[1])[:, :size, :count]
    return y * (gain * scale * norm.unsqueeze(-2))


def _power_shapes(a, scale, num_iters, parts):
    heights = polynomial_within(num_iters, ACCURACIES[parts].tolerance).heights
    size = _padded_size(a.size(-1))
    return [_half(a, a.size(0), size, size) for _ in range(2 * len(heights) + 2)]


def _apply_shape(x, scale, powers, num_iters, parts):
    return x.new_empty(x.shape)


for _device in ('CPU', 'CUDA'):
    _LIBRARY.impl('polynomial_powers', _powers, _device)
    _LIBRARY.impl('apply_polynomial', _apply, _device)
_LIBRARY.impl('polynomial_powers', _power_shapes, 'Meta')
_LIBRARY.impl('apply_polynomial', _apply_shape, 'Meta')


def _split_parts(x, factor, high, low):
    """Parts of x (n, r, c) times a factor (n, c), (n, R, C) each."""
    x = x if x.stride(-1) == 1 else x.contiguous()
    rows, cols = high.shape[-2:]
    block = 16, min(128, cols)
    grid = triton.cdiv(rows, block[0]) * triton.cdiv(cols, block[1]), x.size(0)
    with torch.cuda.device_of(x):
        _split_kernel[grid](
            x,
            factor,
            high,
            low,
            *x.stride()[:2],
            *factor.stride(),
            *x.shape[-2:],
            rows,
            cols,
            ROWS=block[0],
            COLS=block[1],
            num_warps=4,
        )


def _parabola(high, low, height):
    """Parts of 4 h w (1 - h w), (n, M, M) each."""
    out = torch.empty_like(high), torch.empty_like(low)
    matrices, size = high.shape[:2]
    blocks = triton.cdiv(size, _PARABOLA_BLOCK['BLOCK'])
    with torch.cuda.device_of(high):
        _parabola_kernel[triton.cdiv(blocks, 2) * (blocks + 1), matrices](
            high, low, *out, size, height, **_pipelined(_PARABOLA_BLOCK, high)
        )
    return out


def _multiply(w, b, of_product, of_b, previous=None, of_previous=0.0, x=None, of_x=0.0):
    """A sum of w b, b and, if given, of others, in parts, (2, n, M, E). The small part
    of w may be None."""
    high, low = w
    out = torch.empty_like(b)
    _, matrices, size, cols = b.shape
    with torch.cuda.device_of(b):
        _columns_kernel[size // _COLUMN_BLOCK['ROWS'], matrices](
            high,
            high if low is None else low,
            b,
            b if previous is None else previous,
            b if x is None else x,
            out,
            matrices,
            size,
            of_product,
            of_b,
            of_previous,
            of_x,
            PARTS=1 if low is None else 2,
            MORE=x is not None,
            **_pipelined(_column_config(cols), b),
        )
    return out


def _column_config(cols):
    return dict(_COLUMN_BLOCK, COLS=cols, num_warps=4 if cols <= 64 else 8)


def _pipelined(config, x):
    """Without stages where Triton's own may overwrite what a product still reads: in
    the PTX of 3.4 for compute capability 9.0 they do, in that of 3.7 they don't."""
    return config if _SAFE_STAGES or _capability(x) < 90 else dict(config, num_stages=1)


def _half(x, *shape):
    return torch.empty(shape, device=x.device, dtype=torch.float16)


def _padded_size(size):
    return triton.cdiv(size, _PADDING) * _PADDING
