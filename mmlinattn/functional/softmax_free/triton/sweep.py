"""Products with a Gaussian kernel matrix that is never held in memory.

Every product and every gradient is one kind of sweep. With rows r, columns c,
weights w of the columns and weights u of the rows, K the kernel matrix of r
and c, and S = K * (u w^T) entry by entry, a sweep gives ::

    out = K w        and        grad = S c - rowsum(S) r

``grad`` is the gradient of sum(S) with respect to r. A program holds a block
of rows and walks along the columns.

All products are of float16 numbers on tensor cores, with sums in float32. A
float32 operand is the sum of two of them, its parts, which keep 22 of its 24 bits;
of the four products of parts the smallest is left out. Half precision is one
part. Powers of two keep the parts inside float16's range:

- tokens are multiplied by ``_TOKEN_SCALE``. Beyond 4094 they count as infinitely
  far from all others; there float32's own exponents have no digits left;
- weights of columns by one power for each channel of a matrix, so that the largest
  is below ``2 ** _WEIGHT_BITS``;
- weights of rows by one power for each row;
- K by one that keeps S below 2^15 whatever the weights.

A kernel of its own prepares the columns once: parts, weights in parts, and half
the squared norms. So the sweep's loop reads every block of columns by asynchronous
copies straight into shared memory, without masks, and products read them there.

Legend: B batch, h heads, M rows, N columns, d head dim, e value dim.
"""

import os
from functools import cache, reduce
from operator import add

import torch
import triton
import triton.language as tl

from . import MAX_DIM

# Programs that a multiprocessor should get, and columns worth a program.
_PROGRAMS = 4
_MIN_COLUMNS = 512
# What a program costs before its first column, in columns.
_START_COLUMNS = 192

# Columns are padded to a multiple of it, and prepared as many at a time.
_PREPARED = tl.constexpr(64)
_TOKEN_SCALE = tl.constexpr(16.0)
_LARGEST = tl.constexpr(65504.0)  # float16's
_WEIGHT_BITS = tl.constexpr(8)
_LOG2_E = tl.constexpr(1.4426950408889634)

# Rows, columns and warps of a block of K by generation (``_block_config``), parts of
# its entries and padded dim: no larger than registers hold, and rows enough
# that the columns' way from the L2 cache is no bottleneck.
_BLOCKS = {
    80: {
        1: {32: (128, 64, 8), 64: (128, 32, 8), 128: (64, 32, 8)},
        2: {32: (64, 32, 4), 64: (64, 32, 4), 128: (32, 32, 4)},
    },
    90: {
        1: {32: (128, 64, 8), 64: (128, 64, 8), 128: (64, 64, 8)},
        2: {32: (128, 64, 8), 64: (128, 64, 8), 128: (64, 64, 8)},
    },
    # so few rows or warps that Triton takes mma: chains of tcgen05 products go
    # through tensor memory and back, at 3 to 5 times the instructions
    100: {
        1: {32: (32, 64, 2), 64: (32, 32, 2), 128: (32, 32, 4)},
        2: {32: (32, 32, 2), 64: (32, 16, 2), 128: (32, 32, 4)},
    },
}

# Padded dims together, up to which registers hold both sums of a sweep.
_BOTH_UP_TO = 96

# Opaque to torch.compile, which need not see into them to keep a graph whole.
_LIBRARY = torch.library.Library('mmlinattn', 'FRAGMENT')
_LIBRARY.define('kernel_product(Tensor a, Tensor b, Tensor v, int parts) -> Tensor')
_LIBRARY.define(
    'kernel_product_grad(Tensor a, Tensor b, Tensor v, Tensor grad, int parts) '
    '-> (Tensor, Tensor, Tensor)'
)


class TritonProducts:
    """:class:`~mmlinattn.functional.softmax_free.products.Products` on a GPU.

    Every operand may be float32 or half precision. Results are float32: a sum of
    many may overflow float16. The gradients compute K again.

    Args:
        parts (int, optional): Float16 numbers that entries of K, S and all weights
            are rounded to the sum of: 1 keeps 11 bits, 2 keep 22. Tokens always have
            as many as they need. Default: 1 where a, b and v are half precision, 2
            elsewhere.
    """

    def __init__(self, parts=None):
        self.parts = parts

    def product(self, a, b, v):
        """As the interface says."""
        parts = self.parts or _parts(a, b, v)
        return torch.ops.mmlinattn.kernel_product(a, b, v, parts)

    def product_grad(self, a, b, v, grad):
        """As the interface says."""
        parts = self.parts or _parts(a, b, v)
        return torch.ops.mmlinattn.kernel_product_grad(a, b, v, grad, parts)

    def joint_grad(self, a, b, v, y, grad_x, grad_out, x, grad_y):
        """As the interface says; the products x and grad_y are not needed."""
        parts = self.parts or _parts(a, b, v)
        # S of the product of K with both is the sum of their S
        v_and_grad_out, grad_x_and_y = _beside(v, grad_out), _beside(grad_x, y)
        grad_a, grad_b, grad_v = torch.ops.mmlinattn.kernel_product_grad(
            a, b, v_and_grad_out, grad_x_and_y, parts
        )
        return grad_a, grad_b, grad_v[..., : v.size(-1)]


def _product(a, b, v, parts):
    pieces = [
        _sweep(a, _Columns(b, channels, parts), parts=parts)[0]
        for channels in v.split(MAX_DIM, dim=-1)
    ]
    return _joined(pieces)


def _product_shape(a, b, v, parts):
    return a.new_empty(*a.shape[:-1], v.size(-1), dtype=torch.float32)


def _product_grad(a, b, v, grad, parts):
    # S is a sum over channels, of which a block has so many
    channels = zip(v.split(MAX_DIM, dim=-1), grad.split(MAX_DIM, dim=-1))
    pieces = [_piece_of_grad(a, b, *pair, parts) for pair in channels]
    grads_a, grads_b, grads_v = zip(*pieces)
    return reduce(add, grads_a), reduce(add, grads_b), _joined(grads_v)


def _piece_of_grad(a, b, v, grad, parts):
    _, grad_a = _sweep(a, _Columns(b, v, parts), grad, want_out=False, parts=parts)
    grad_v, grad_b = _sweep(b, _Columns(a, grad, parts), v, parts=parts)
    return grad_a, grad_b, grad_v


def _product_grad_shapes(a, b, v, grad, parts):
    return tuple(x.new_empty(x.shape, dtype=torch.float32) for x in (a, b, v))


for _device in ('CPU', 'CUDA'):
    _LIBRARY.impl('kernel_product', _product, _device)
    _LIBRARY.impl('kernel_product_grad', _product_grad, _device)
_LIBRARY.impl('kernel_product', _product_shape, 'Meta')
_LIBRARY.impl('kernel_product_grad', _product_grad_shapes, 'Meta')


def _joined(pieces):
    """Channels of all pieces in one tensor."""
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=-1)


def _beside(x, y):
    """Channels of both in one tensor, half precision where both have the same."""
    dtype = x.dtype if x.dtype == y.dtype else torch.float32
    return torch.cat((x.to(dtype), y.to(dtype)), dim=-1)


def _parts(*tensors):
    """Float16 numbers that hold the entries of all these tensors."""
    return 2 if any(x.dtype == torch.float32 for x in tensors) else 1


class _Columns:
    """Columns and their weights, prepared for any number of sweeps.

    Args:
        tokens (Tensor): (B, h, N, d).
        weights (Tensor): (B, h, N, e).
        parts (int): The most for a weight; tokens have as many as they need, as
            their errors grow with the exponents.

    Attributes:
        tokens (Tensor): Parts, float16, (parts, B * h, N', D): N and d padded.
        half_squares (Tensor): Half the squared norms, to base 2, float32,
            (B * h, N'); infinite for padding.
        weights (Tensor): Parts, float16, (parts, B * h, N', E).
        largest (Tensor): Largest magnitudes of the weights' channels, (B, h, e).
    """

    def __init__(self, tokens, weights, parts):
        tokens, weights = _with_unit_stride(tokens), _with_unit_stride(weights)
        batch, heads, self.size, self.dim = tokens.shape
        self.value_dim = weights.size(-1)
        matrices = batch * heads
        blocks = triton.cdiv(self.size, _PREPARED.value)
        shape = matrices, blocks * _PREPARED.value
        half = dict(device=tokens.device, dtype=torch.float16)
        self.tokens = torch.empty(_parts(tokens), *shape, _padded(self.dim), **half)
        self.weights = torch.empty(
            min(parts, _parts(weights)), *shape, _padded(self.value_dim), **half
        )
        self.half_squares = tokens.new_empty(shape, dtype=torch.float32)
        largest = torch.linalg.vector_norm(weights, torch.inf, dim=-2)
        self.largest = largest.contiguous()
        with torch.cuda.device_of(tokens):
            _prepare_kernel[matrices * blocks,](
                tokens,
                weights,
                self.largest,
                self.tokens,
                self.half_squares,
                self.weights,
                *tokens.stride()[:3],
                *weights.stride()[:3],
                heads,
                matrices,
                self.size,
                DIM=self.dim,
                VALUE_DIM=self.value_dim,
                PADDED_DIM=self.tokens.size(-1),
                PADDED_VALUE_DIM=self.weights.size(-1),
                TOKEN_PARTS=self.tokens.size(0),
                WEIGHT_PARTS=self.weights.size(0),
                COLS=_PREPARED.value,
                num_warps=4,
            )


def _sweep(rows, columns, u=None, *, want_out=True, parts):
    """``out`` if wanted and, with ``u``, ``grad`` (see the module).

    Args:
        rows (Tensor): (B, h, M, d).
        columns (_Columns): N columns and their weights.
        u (Tensor, optional): (B, h, M, e).
        want_out (bool): Whether to compute ``out``.
        parts (int): Of the entries of K and S, and the most for those of ``u``.

    Returns:
        tuple[Tensor]: (B, h, M, e) and (B, h, M, d), float32, or None.
    """
    padded = _padded(columns.dim), _padded(columns.value_dim)
    if want_out and u is not None and sum(padded) > _BOTH_UP_TO:
        out, _ = _sweep(rows, columns, parts=parts)
        return out, _sweep(rows, columns, u, want_out=False, parts=parts)[1]
    rows, u = _with_unit_stride(rows), _with_unit_stride(u)
    batch, heads, num_rows, dim = rows.shape
    matrices, padded_cols = columns.half_squares.shape
    config = _block_config(max(padded), num_rows, parts, _capability(rows))
    programs = matrices * triton.cdiv(num_rows, config['ROWS'])
    chunk, splits = _split_columns(
        columns.size, config['COLS'], programs, _num_multiprocessors(rows)
    )

    # partial sums, added afterwards: the result is always the same
    shape = (splits, batch, heads, num_rows)
    out = grad = None
    if want_out:
        out = rows.new_empty(*shape, columns.value_dim, dtype=torch.float32)
    if u is not None:
        grad = rows.new_empty(*shape, dim, dtype=torch.float32)
    row_weights = rows if u is None else u
    with torch.cuda.device_of(rows):
        _sweep_kernel[programs, splits](
            rows,
            row_weights,
            columns.tokens,
            columns.half_squares,
            columns.weights,
            columns.largest,
            columns.half_squares if out is None else out,
            columns.half_squares if grad is None else grad,
            *rows.stride()[:3],
            *row_weights.stride()[:3],
            heads,
            matrices,
            num_rows,
            padded_cols,
            chunk,
            DIM=dim,
            VALUE_DIM=columns.value_dim,
            PADDED_DIM=padded[0],
            PADDED_VALUE_DIM=padded[1],
            ROW_PARTS=_parts(rows),
            ROW_WEIGHT_PARTS=min(parts, _parts(row_weights)),
            COLUMN_PARTS=columns.tokens.size(0),
            WEIGHT_PARTS=columns.weights.size(0),
            PARTS=parts,
            K_BITS=_k_bits(padded[1]),
            WANT_OUT=want_out,
            WANT_GRAD=u is not None,
            **config,
        )
    return tuple(
        x if x is None else x[0] if splits == 1 else x.sum(0) for x in (out, grad)
    )


def _with_unit_stride(x):
    return x if x is None or x.stride(-1) == 1 else x.contiguous()


def _padded(size):
    """The next power of two, at least 16: what a product of blocks takes."""
    return max(16, triton.next_power_of_2(size))


def _k_bits(padded_value_dim):
    """S is a sum of e products of at most 2^8 (w) and 2^-2 (u), times K of at most 2
    to this power, and has to stay below 2^16."""
    return 10 - padded_value_dim.bit_length()


def _block_config(dim, num_rows, parts, capability):
    # consumer cards of Blackwell (120) have what those of Ada have
    generation = 80 if capability >= 120 else min(capability // 10 * 10, 100)
    rows, cols, num_warps = _BLOCKS[generation][parts][max(32, dim)]
    # few rows need no more than the next power of two
    rows = min(rows, _padded(num_rows))
    return dict(ROWS=rows, COLS=cols, num_warps=num_warps, num_stages=2)


def _capability(x):
    if not x.is_cuda:
        return 80
    major, minor = torch.cuda.get_device_capability(x.device)
    return 10 * major + minor


@cache
def _split_columns(num_cols, block, programs, multiprocessors):
    """Cuts the columns in pieces where the blocks of rows don't fill a GPU.

    A last wave of few programs takes as long as a full one: of all numbers of
    pieces the one with the least columns one after the other is taken.

    Args:
        num_cols (int): Columns of a matrix.
        block (int): Columns of a block.
        programs (int): Blocks of rows in all matrices.
        multiprocessors (int): Of the GPU.

    Returns:
        tuple[int]: Columns of a piece, a multiple of ``block``, and pieces.
    """
    slots = _PROGRAMS * multiprocessors

    def columns_in_turn(splits):
        chunk = triton.cdiv(triton.cdiv(num_cols, splits), block) * block
        waves = triton.cdiv(programs * splits, slots)
        return waves * (chunk + _START_COLUMNS), splits

    most = min(slots, triton.cdiv(num_cols, _MIN_COLUMNS))
    splits = min(range(1, most + 1), key=columns_in_turn)
    chunk = triton.cdiv(triton.cdiv(num_cols, splits), block) * block
    return chunk, triton.cdiv(num_cols, chunk)


def _num_multiprocessors(x):
    if not x.is_cuda:
        return 1
    return torch.cuda.get_device_properties(x.device).multi_processor_count


# Sizes change from image to image: no new compilation for 1 or 16 of them.
@triton.jit(do_not_specialize=['heads', 'matrices', 'num_cols'])
def _prepare_kernel(
    tokens,
    weights,
    largest,
    token_parts,
    half_squares,
    weight_parts,
    tokens_b,
    tokens_h,
    tokens_n,
    weights_b,
    weights_h,
    weights_n,
    heads,
    matrices,
    num_cols,
    DIM: tl.constexpr,
    VALUE_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    PADDED_VALUE_DIM: tl.constexpr,
    TOKEN_PARTS: tl.constexpr,
    WEIGHT_PARTS: tl.constexpr,
    COLS: tl.constexpr,
):
    blocks = tl.cdiv(num_cols, COLS)
    matrix = tl.program_id(0) // blocks
    batch = (matrix // heads).to(tl.int64)
    head = (matrix % heads).to(tl.int64)
    tokens += batch * tokens_b + head * tokens_h
    weights += batch * weights_b + head * weights_h

    j = tl.program_id(0) % blocks * COLS + tl.arange(0, COLS)
    place = tl.program_id(0).to(tl.int64) * COLS + tl.arange(0, COLS)
    part = matrices.to(tl.int64) * blocks * COLS

    c = _load(tokens, tokens_n, j, num_cols, DIM, PADDED_DIM)
    high, low = _token_parts(c)
    square = _half_square(c, high, low, TOKEN_PARTS)
    # a column of padding is infinitely far away
    square = tl.where(j < num_cols, square, float('inf'))
    tl.store(half_squares + place, square)
    token_parts += place[:, None] * PADDED_DIM + tl.arange(0, PADDED_DIM)[None, :]
    tl.store(token_parts, high)
    if TOKEN_PARTS == 2:
        tl.store(token_parts + part * PADDED_DIM, low)

    w = _load(weights, weights_n, j, num_cols, VALUE_DIM, PADDED_VALUE_DIM)
    channel = tl.arange(0, PADDED_VALUE_DIM)
    scale, _ = _weight_scale(largest, matrix, channel, VALUE_DIM)
    high, low = _split(w * scale[None, :])
    weight_parts += place[:, None] * PADDED_VALUE_DIM + channel[None, :]
    tl.store(weight_parts, high)
    if WEIGHT_PARTS == 2:
        tl.store(weight_parts + part * PADDED_VALUE_DIM, low)


@triton.jit(do_not_specialize=['heads', 'matrices', 'num_rows', 'padded_cols', 'chunk'])
def _sweep_kernel(
    rows,
    u,
    cols,
    half_squares,
    w,
    largest,
    out,
    grad,
    rows_b,
    rows_h,
    rows_n,
    u_b,
    u_h,
    u_n,
    heads,
    matrices,
    num_rows,
    padded_cols,
    chunk,
    DIM: tl.constexpr,
    VALUE_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    PADDED_VALUE_DIM: tl.constexpr,
    ROW_PARTS: tl.constexpr,
    ROW_WEIGHT_PARTS: tl.constexpr,
    COLUMN_PARTS: tl.constexpr,
    WEIGHT_PARTS: tl.constexpr,
    PARTS: tl.constexpr,
    K_BITS: tl.constexpr,
    WANT_OUT: tl.constexpr,
    WANT_GRAD: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    row_blocks = tl.cdiv(num_rows, ROWS)
    matrix = tl.program_id(0) // row_blocks
    batch = (matrix // heads).to(tl.int64)
    head = (matrix % heads).to(tl.int64)
    rows += batch * rows_b + head * rows_h
    u += batch * u_b + head * u_h

    i = tl.program_id(0) % row_blocks * ROWS + tl.arange(0, ROWS)
    r = _load(rows, rows_n, i, num_rows, DIM, PADDED_DIM)
    r_high, r_low = _token_parts(r)
    half_square_r = _half_square(r, r_high, r_low, ROW_PARTS) - K_BITS
    channel = tl.arange(0, PADDED_VALUE_DIM)
    _, down = _weight_scale(largest, matrix, channel, VALUE_DIM)
    if WANT_OUT:
        out_sum = tl.zeros((ROWS, PADDED_VALUE_DIM), tl.float32)
    if WANT_GRAD:
        row_weight = _load(u, u_n, i, num_rows, VALUE_DIM, PADDED_VALUE_DIM)
        row_weight *= down[None, :]
        row_up, row_down = _row_scale(row_weight)
        u_high, u_low = _split(row_weight * row_up[:, None])
        s_c = tl.zeros((ROWS, PADDED_DIM), tl.float32)
        s_sum = tl.zeros((ROWS,), tl.float32)

    part = matrices.to(tl.int64) * padded_cols
    first = tl.program_id(1) * chunk
    place = matrix.to(tl.int64) * padded_cols + first + tl.arange(0, COLS)
    half_squares += place
    cols += place[:, None] * PADDED_DIM + tl.arange(0, PADDED_DIM)[None, :]
    w += place[:, None] * PADDED_VALUE_DIM + channel[None, :]
    for _ in range(first, tl.minimum(first + chunk, padded_cols), COLS):
        c_high = tl.load(cols)
        w_high = tl.load(w)
        c_low, w_low = c_high, w_high
        if COLUMN_PARTS == 2:
            c_low = tl.load(cols + part * PADDED_DIM)
        if WEIGHT_PARTS == 2:
            w_low = tl.load(w + part * PADDED_VALUE_DIM)
        exponent = _dot(
            r_high, r_low, tl.trans(c_high), tl.trans(c_low), ROW_PARTS, COLUMN_PARTS
        )
        half_square_c = tl.load(half_squares)
        exponent = exponent * (_LOG2_E / _TOKEN_SCALE / _TOKEN_SCALE)
        exponent = exponent - half_square_c[None, :] - half_square_r[:, None]
        # rounding can make a distance negative; NaN must stay NaN
        k = _exp2(tl.minimum(exponent, K_BITS, propagate_nan=tl.PropagateNan.ALL))
        if WANT_OUT:
            k_high, k_low = _split(k)
            out_sum += _dot(k_high, k_low, w_high, w_low, PARTS, WEIGHT_PARTS)
        if WANT_GRAD:
            s = k * _dot(
                u_high,
                u_low,
                tl.trans(w_high),
                tl.trans(w_low),
                ROW_WEIGHT_PARTS,
                WEIGHT_PARTS,
            )
            s_high, s_low = _split(s)
            s_c += _dot(s_high, s_low, c_high, c_low, PARTS, COLUMN_PARTS)
            # both sums of S from the same rounded values: their errors cancel
            s_sum += tl.sum(s_high.to(tl.float32) if PARTS == 1 else s, 1)
        cols += COLS * PADDED_DIM
        w += COLS * PADDED_VALUE_DIM
        half_squares += COLS

    # the place among all the partial sums
    place = (tl.program_id(1) * matrices + matrix).to(tl.int64) * num_rows
    unit: tl.constexpr = 2.0**-K_BITS
    if WANT_OUT:
        out_sum *= down[None, :] * unit
        _store(out, place, i, num_rows, out_sum, VALUE_DIM, PADDED_VALUE_DIM)
    if WANT_GRAD:
        # read again, as registers are few in the loop
        r = _load(rows, rows_n, i, num_rows, DIM, PADDED_DIM, volatile=True)
        s_c = s_c * (1 / _TOKEN_SCALE) - s_sum[:, None] * r
        s_c *= row_down[:, None] * unit
        _store(grad, place, i, num_rows, s_c, DIM, PADDED_DIM)


@triton.jit
def _dot(x_high, x_low, y_high, y_low, X_PARTS: tl.constexpr, Y_PARTS: tl.constexpr):
    """x y without the product of the low parts."""
    if X_PARTS == 1 and Y_PARTS == 1:
        return tl.dot(x_high, y_high)
    elif X_PARTS == 1:
        return tl.dot(x_high, y_high, tl.dot(x_high, y_low))
    elif Y_PARTS == 1:
        return tl.dot(x_high, y_high, tl.dot(x_low, y_high))
    else:
        low = tl.dot(x_high, y_low, tl.dot(x_low, y_high))
        return tl.dot(x_high, y_high, low)


@triton.jit
def _split(x):
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16)


@triton.jit
def _token_parts(x):
    x = x * _TOKEN_SCALE
    # an infinite part would be NaN in a product with 0
    largest = tl.full(x.shape, _LARGEST, tl.float32)
    x = tl.minimum(x, largest, propagate_nan=tl.PropagateNan.ALL)
    x = tl.maximum(x, -largest, propagate_nan=tl.PropagateNan.ALL)
    return _split(x)


@triton.jit
def _half_square(x, high, low, PARTS: tl.constexpr):
    """Half of |x|^2 to base 2, as a product of these parts would give it."""
    high = high.to(tl.float32)
    product = high * high
    if PARTS == 2:
        product += 2 * high * low.to(tl.float32)
    product *= 1 / (_TOKEN_SCALE * _TOKEN_SCALE)
    inside = tl.abs(x) < _LARGEST / _TOKEN_SCALE
    return tl.sum(tl.where(inside, product, x * x), 1) * (_LOG2_E / 2)


@triton.jit
def _weight_scale(largest, matrix, channel, VALUE_DIM: tl.constexpr):
    """The powers of two that scale the weights of each channel, and back."""
    largest += matrix.to(tl.int64) * VALUE_DIM + channel
    exponent = _exponent(tl.load(largest, mask=channel < VALUE_DIM, other=0.0))
    exponent = tl.maximum(exponent, _WEIGHT_BITS)
    return _power(-exponent + (253 + _WEIGHT_BITS)), _power(exponent + 1 - _WEIGHT_BITS)


@triton.jit
def _row_scale(x):
    """The powers of two that bring each row's largest below 2^-2, and back."""
    exponent = tl.minimum(_exponent(tl.max(tl.abs(x), 1)), 250)
    return _power(251 - exponent), _power(exponent + 3)


@triton.jit
def _exponent(x):
    """The biased exponent of x >= 0."""
    return x.to(tl.float32).to(tl.int32, bitcast=True) >> 23


@triton.jit
def _power(exponent):
    """2 to the power of a biased exponent."""
    return (exponent << 23).to(tl.float32, bitcast=True)


@triton.jit
def _load(
    matrix,
    stride,
    index,
    size,
    DIM: tl.constexpr,
    PADDED: tl.constexpr,
    volatile: tl.constexpr = False,
):
    """Rows ``index`` of a (size, DIM) matrix in float32, 0 outside of it."""
    channel = tl.arange(0, PADDED)
    inside = (index < size)[:, None] & (channel < DIM)[None, :]
    offset = index.to(tl.int64)[:, None] * stride + channel[None, :]
    x = tl.load(matrix + offset, mask=inside, other=0.0, volatile=volatile)
    return x.to(tl.float32)


@triton.jit
def _store(matrices, place, index, size, x, DIM: tl.constexpr, PADDED: tl.constexpr):
    channel = tl.arange(0, PADDED)
    inside = (index < size)[:, None] & (channel < DIM)[None, :]
    offset = (place + index)[:, None] * DIM + channel[None, :]
    tl.store(matrices + offset, x, mask=inside)


if os.environ.get('TRITON_INTERPRET') == '1':

    @triton.jit
    def _exp2(x):
        return tl.exp2(x)
else:

    @triton.jit
    def _exp2(x):
        # results below 2^-126 as 0, which saves three of four instructions
        return tl.inline_asm_elementwise(
            'ex2.approx.ftz.f32 $0, $1;',
            '=f,f',
            [x],
            dtype=tl.float32,
            is_pure=True,
            pack=1,
        )
