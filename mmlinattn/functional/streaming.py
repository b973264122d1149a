"""Products with a Gaussian kernel matrix that is only ever there in blocks.

They are plain PyTorch, for any device and floating-point type, and recompute
the blocks where they are needed again: memory is that of the inputs and outputs.

Legend: ... batch and heads, M rows, K columns, d channels of tokens, e channels
of values.
"""
import torch

# Entries of a block. On a CPU it should stay in the cache between the
# operations on it; a GPU needs more to be busy.
_BLOCK_ENTRIES = dict(cpu=2**19, cuda=2**25)


def gaussian_product(a, b, v):
    """exp(-|a_i - b_j|^2 / 2) times v.

    Args:
        a (Tensor): (..., M, d).
        b (Tensor): (..., K, d).
        v (Tensor): (..., K, e).

    Returns:
        Tensor: (..., M, e).
    """
    out = v.new_zeros(*a.shape[:-1], v.size(-1)).flatten(0, -3)
    shape = a.shape[:-1] + v.shape[-1:]
    a, b, v = (x.flatten(0, -3) for x in (a, b, v))
    if a.size(1) >= b.size(1):
        for heads, rows, kernel in _kernel_blocks(_as_rows(a), _as_columns(b)):
            out[heads, rows] = kernel @ v[heads]
    else:
        for heads, columns, kernel in _kernel_blocks(_as_rows(b), _as_columns(a)):
            out[heads].baddbmm_(kernel.mT, v[heads, columns])
    return out.view(shape)


def gaussian_product_grad(a, b, v, grad):
    r"""Gradients of :func:`gaussian_product`.

    With K the kernel matrix, G the gradient of its product with v and
    :math:`S = K \circ G v^T`: :math:`\nabla_v = K^T G`, :math:`\nabla_a = S b -
    diag(S 1) a`, :math:`\nabla_b = S^T a - diag(S^T 1) b`.

    Args:
        a (Tensor): (..., M, d).
        b (Tensor): (..., K, d).
        v (Tensor): (..., K, e).
        grad (Tensor): G, (..., M, e).

    Returns:
        tuple[Tensor]: Gradients of a, b and v.
    """
    shapes = a.shape, b.shape, v.shape
    a, b, v, grad = (x.flatten(0, -3) for x in (a, b, v, grad))
    grad_v = torch.zeros_like(v)
    rows_are_many = a.size(1) >= b.size(1)
    many, few = (a, b) if rows_are_many else (b, a)
    rows, columns = _as_rows(many), _as_columns(few)
    grad_rows, grad_columns = torch.empty_like(rows), torch.zeros_like(columns)
    for heads, tokens, kernel in _kernel_blocks(rows, columns):
        if rows_are_many:
            grad_v[heads].baddbmm_(kernel.mT, grad[heads, tokens])
            outer = grad[heads, tokens] @ v[heads].mT
        else:
            grad_v[heads, tokens] = kernel @ grad[heads]
            outer = v[heads, tokens] @ grad[heads].mT
        outer *= kernel
        grad_rows[heads, tokens] = outer @ columns[heads]
        grad_columns[heads].baddbmm_(outer.mT, rows[heads, tokens])
    # the squared norms are one of the factors' channels
    d = a.size(-1)
    grad_many = grad_rows[..., :d] - grad_rows[..., d:d + 1] * many
    grad_few = grad_columns[..., :d] - grad_columns[..., d + 1:] * few
    grads = (grad_many, grad_few) if rows_are_many else (grad_few, grad_many)
    return tuple(
        g.view(shape) for g, shape in zip((*grads, grad_v), shapes))


def _as_rows(x):
    """Left factor of the exponents -|x - y|^2 / 2, (..., d + 2)."""
    half_square = -x.square().sum(-1, keepdim=True) / 2
    return torch.cat([x, half_square, torch.ones_like(half_square)], dim=-1)


def _as_columns(x):
    """Right factor of the exponents, (..., d + 2)."""
    half_square = -x.square().sum(-1, keepdim=True) / 2
    return torch.cat([x, torch.ones_like(half_square), half_square], dim=-1)


def _kernel_blocks(rows, columns):
    """Blocks of the kernel matrix: which heads, which rows, the entries."""
    heads, num_rows, _ = rows.shape
    entries = _BLOCK_ENTRIES.get(rows.device.type, 2**19)
    rows_at_once = min(max(entries // columns.size(1), 1), num_rows)
    heads_at_once = max(entries // (rows_at_once * columns.size(1)), 1)
    for head in range(0, heads, heads_at_once):
        of_heads = slice(head, head + heads_at_once)
        right = columns[of_heads].mT
        for row in range(0, num_rows, rows_at_once):
            of_rows = slice(row, row + rows_at_once)
            # rounding can make a distance negative
            exponents = (rows[of_heads, of_rows] @ right).clamp_(max=0)
            yield of_heads, of_rows, exponents.exp_()
