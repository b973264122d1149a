"""Products with a Gaussian kernel matrix that is never held in memory.

Every product and every gradient is one kind of sweep. With rows r, columns c,
weights w of the columns and weights u of the rows, K the kernel matrix of r
and c, and S = K * (u w^T) entry by entry, a sweep gives ::

    out = K w        and        grad = S c - rowsum(S) r

``grad`` is the gradient of sum(S) with respect to r. A program holds a block
of rows and walks along the columns.

Legend: B batch, h heads, M rows, N columns, d head dim, e value dim.
"""

import torch
import triton
import triton.language as tl

from . import MAX_DIM

# Programs that a multiprocessor should get, and columns worth a program.
_PROGRAMS = 4
_MIN_COLUMNS = 512

# Rows, columns and warps of a block of K by float32 or not and padded dim: no
# larger than registers and shared memory hold.
_BLOCKS = {
    True: {32: (64, 32, 4), 64: (64, 16, 4), 128: (32, 16, 4)},
    False: {32: (128, 64, 8), 64: (128, 32, 8), 128: (64, 32, 4)},
}

_TRITON_DTYPES = {
    torch.float32: tl.float32,
    torch.float16: tl.float16,
    torch.bfloat16: tl.bfloat16,
}


def gaussian_product(a, b, v):
    r"""Product :math:`K v` with :math:`K_{ij} = \exp(-\|a_i - b_j\|^2 / 2)`.

    Memory is linear in M and N. Half precision, where all three have the same,
    is multiplied as it is; the exponent and all sums are float32.

    Args:
        a (Tensor): (B, h, M, d).
        b (Tensor): (B, h, N, d).
        v (Tensor): (B, h, N, e).

    Returns:
        Tensor: (B, h, M, e), float32: a sum of many may overflow float16.
    """
    return _sweep(a, b, v, dtype=_common_dtype(a, b, v))[0]


def gaussian_product_grad(a, b, v, grad):
    r"""Gradients of :func:`gaussian_product`.

    With G = ``grad`` and :math:`S = K \circ G v^T`: :math:`\nabla_a = S b -
    S1 \circ a`, :math:`\nabla_b = S^T a - S^T 1 \circ b` and :math:`\nabla_v =
    K^T G`. K is computed again.

    Args:
        a (Tensor): (B, h, M, d).
        b (Tensor): (B, h, N, d).
        v (Tensor): (B, h, N, e).
        grad (Tensor): Gradient of the product, (B, h, M, e).

    Returns:
        tuple[Tensor]: Gradients of a, b and v, float32.
    """
    dtype = _common_dtype(a, b, v)
    scale = None
    if dtype != torch.float32:
        # a gradient under a loss scale has no room in float16
        scale = grad.abs().amax((-2, -1), keepdim=True).float()
        scale = scale.clamp(min=torch.finfo(torch.float32).tiny)
        grad = grad / scale
    _, grad_a = _sweep(a, b, v, grad, want_out=False, dtype=dtype)
    grad_v, grad_b = _sweep(b, a, grad, v, dtype=dtype)
    grads = grad_a, grad_b, grad_v
    return grads if scale is None else tuple(x.mul_(scale) for x in grads)


def both_products_grad(a, b, v, y, grad_x, grad_out, x, grad_y):
    r"""Gradients of the products :math:`x = K v` and :math:`out = K^T y` together.

    Args:
        a (Tensor): (B, h, M, d).
        b (Tensor): (B, h, N, d).
        v (Tensor): (B, h, N, e).
        y (Tensor): (B, h, M, e).
        grad_x (Tensor): Gradient of x, (B, h, M, e).
        grad_out (Tensor): Gradient of out, (B, h, N, e).
        x (Tensor): Not needed here.
        grad_y (Tensor): Not needed here.

    Returns:
        tuple[Tensor]: Gradients of a, b and v, float32.
    """
    if 2 * v.size(-1) <= MAX_DIM:
        # S of the product of K with both is the sum of their S
        grad_a, grad_b, grad_v = gaussian_product_grad(
            a, b, torch.cat((v, grad_out), dim=-1), torch.cat((grad_x, y), dim=-1)
        )
        return grad_a, grad_b, grad_v[..., : v.size(-1)]
    grad_a, grad_b, grad_v = gaussian_product_grad(a, b, v, grad_x)
    grad_b_of_out, grad_a_of_out, _ = gaussian_product_grad(b, a, y, grad_out)
    return grad_a + grad_a_of_out, grad_b + grad_b_of_out, grad_v


def _common_dtype(*tensors):
    """Dtype of the products: half only where all operands have the same."""
    dtypes = {x.dtype for x in tensors}
    # Triton's interpreter can't multiply bfloat16
    emulated = not tensors[0].is_cuda and torch.bfloat16 in dtypes
    return torch.float32 if len(dtypes) > 1 or emulated else dtypes.pop()


def _sweep(rows, cols, w, u=None, *, want_out=True, dtype):
    """``out`` if wanted and, with ``u``, ``grad`` (see the module).

    Args:
        rows (Tensor): (B, h, M, d).
        cols (Tensor): (B, h, N, d).
        w (Tensor): (B, h, N, e).
        u (Tensor, optional): (B, h, M, e).
        want_out (bool): Whether to compute ``out``.
        dtype (torch.dtype): Of the factors of every product.

    Returns:
        tuple[Tensor]: (B, h, M, e) and (B, h, M, d), float32, or None.
    """
    rows, cols, w, u = (_with_unit_stride(x) for x in (rows, cols, w, u))
    batch, heads, num_rows, dim = rows.shape
    num_cols, value_dim = w.shape[-2:]
    padded_dim, padded_value_dim = _padded(dim), _padded(value_dim)
    config = _block_config(
        max(padded_dim, padded_value_dim), num_rows, dtype, _capability(rows)
    )
    programs = batch * heads * triton.cdiv(num_rows, config['ROWS'])
    chunk, splits = _split_columns(
        num_cols, config['COLS'], programs, _num_multiprocessors(rows)
    )

    # partial sums, added afterwards: the result is always the same
    shape = (splits, batch, heads, num_rows)
    out = grad = None
    if want_out:
        out = rows.new_empty(*shape, value_dim, dtype=torch.float32)
    if u is not None:
        grad = rows.new_empty(*shape, dim, dtype=torch.float32)
    row_weights = rows if u is None else u
    with torch.cuda.device_of(rows):
        _sweep_kernel[programs, splits](
            rows,
            cols,
            w,
            row_weights,
            rows if out is None else out,
            rows if grad is None else grad,
            *rows.stride()[:3],
            *cols.stride()[:3],
            *w.stride()[:3],
            *row_weights.stride()[:3],
            heads,
            num_rows,
            num_cols,
            chunk,
            DIM=dim,
            VALUE_DIM=value_dim,
            PADDED_DIM=padded_dim,
            PADDED_VALUE_DIM=padded_value_dim,
            DTYPE=_TRITON_DTYPES[dtype],
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


def _block_config(dim, num_rows, dtype, capability=80):
    rows, cols, num_warps = _BLOCKS[dtype == torch.float32][max(32, dim)]
    # few rows need no more than the next power of two
    rows = min(rows, _padded(num_rows))
    # Triton gives the columns one buffer where they are read by registers too,
    # and copies the next ones there while a wgmma of half precision still reads
    num_stages = 1 if capability >= 90 and dtype != torch.float32 else 2
    return dict(ROWS=rows, COLS=cols, num_warps=num_warps, num_stages=num_stages)


def _capability(x):
    if not x.is_cuda:
        return 80
    major, minor = torch.cuda.get_device_capability(x.device)
    return 10 * major + minor


def _split_columns(num_cols, block, programs, multiprocessors):
    """Cuts the columns in pieces where the blocks of rows don't fill a GPU.

    Args:
        num_cols (int): Columns of a matrix.
        block (int): Columns of a block.
        programs (int): Blocks of rows in all matrices.
        multiprocessors (int): Of the GPU.

    Returns:
        tuple[int]: Columns of a piece, a multiple of ``block``, and pieces.
    """
    # an empty batch has no programs
    wanted = triton.cdiv(_PROGRAMS * multiprocessors, max(1, programs))
    splits = min(wanted, triton.cdiv(num_cols, _MIN_COLUMNS))
    chunk = triton.cdiv(triton.cdiv(num_cols, splits), block) * block
    return chunk, triton.cdiv(num_cols, chunk)


def _num_multiprocessors(x):
    if not x.is_cuda:
        return 1
    return torch.cuda.get_device_properties(x.device).multi_processor_count


# Sizes change from image to image: no new compilation for 1 or 16 of them.
@triton.jit(do_not_specialize=['heads', 'num_rows', 'num_cols', 'chunk'])
def _sweep_kernel(
    rows,
    cols,
    w,
    u,
    out,
    grad,
    rows_b,
    rows_h,
    rows_n,
    cols_b,
    cols_h,
    cols_n,
    w_b,
    w_h,
    w_n,
    u_b,
    u_h,
    u_n,
    heads,
    num_rows,
    num_cols,
    chunk,
    DIM: tl.constexpr,
    VALUE_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    PADDED_VALUE_DIM: tl.constexpr,
    DTYPE: tl.constexpr,
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
    cols += batch * cols_b + head * cols_h
    w += batch * w_b + head * w_h
    u += batch * u_b + head * u_h

    i = tl.program_id(0) % row_blocks * ROWS + tl.arange(0, ROWS)
    r = _load(rows, rows_n, i, num_rows, DIM, PADDED_DIM, DTYPE)
    half_square_r = _half_square(r)
    if WANT_OUT:
        out_sum = tl.zeros((ROWS, PADDED_VALUE_DIM), tl.float32)
    if WANT_GRAD:
        row_weight = _load(u, u_n, i, num_rows, VALUE_DIM, PADDED_VALUE_DIM, DTYPE)
        s_c = tl.zeros((ROWS, PADDED_DIM), tl.float32)
        s_sum = tl.zeros((ROWS,), tl.float32)

    first = tl.program_id(1) * chunk
    for start in range(first, tl.minimum(first + chunk, num_cols), COLS):
        j = start + tl.arange(0, COLS)
        c = _load(cols, cols_n, j, num_cols, DIM, PADDED_DIM, DTYPE)
        # 0 past the last column, which adds nothing to any sum
        weight = _load(w, w_n, j, num_cols, VALUE_DIM, PADDED_VALUE_DIM, DTYPE)
        exponent = _dot(r, tl.trans(c))
        exponent -= half_square_r[:, None] + _half_square(c)[None, :]
        # rounding can make a distance negative; NaN must stay NaN
        k = tl.exp(tl.where(exponent > 0, 0.0, exponent))
        if WANT_OUT:
            out_sum += _dot(k.to(DTYPE), weight)
        if WANT_GRAD:
            # both sums of S from the same rounded values: their errors cancel
            s = (k * _dot(row_weight, tl.trans(weight))).to(DTYPE)
            s_c += _dot(s, c)
            s_sum += tl.sum(s.to(tl.float32), 1)

    # the place among all the partial sums
    place = (tl.program_id(1) * (tl.num_programs(0) // row_blocks) + matrix).to(
        tl.int64
    ) * num_rows
    if WANT_OUT:
        _store(out, place, i, num_rows, out_sum, VALUE_DIM, PADDED_VALUE_DIM)
    if WANT_GRAD:
        s_c -= s_sum[:, None] * r.to(tl.float32)
        _store(grad, place, i, num_rows, s_c, DIM, PADDED_DIM)


@triton.jit
def _dot(x, y):
    # float32 in three products of tensor cores, with nearly all its digits
    return tl.dot(x, y, input_precision='tf32x3')


@triton.jit
def _half_square(x):
    x = x.to(tl.float32)
    return tl.sum(x * x, 1) / 2


@triton.jit
def _load(
    matrix,
    stride,
    index,
    size,
    DIM: tl.constexpr,
    PADDED: tl.constexpr,
    DTYPE: tl.constexpr,
):
    """Rows ``index`` of a (size, DIM) matrix, 0 outside of it."""
    channel = tl.arange(0, PADDED)
    inside = (index < size)[:, None] & (channel < DIM)[None, :]
    offset = index.to(tl.int64)[:, None] * stride + channel[None, :]
    return tl.load(matrix + offset, mask=inside, other=0.0).to(DTYPE)


@triton.jit
def _store(matrices, place, index, size, x, DIM: tl.constexpr, PADDED: tl.constexpr):
    channel = tl.arange(0, PADDED)
    inside = (index < size)[:, None] & (channel < DIM)[None, :]
    offset = (place + index)[:, None] * DIM + channel[None, :]
    tl.store(matrices + offset, x, mask=inside)
