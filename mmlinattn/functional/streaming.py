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
        for heads, rows, kernel, _ in _kernel_blocks(a, b):
            out[heads, rows] = kernel @ v[heads]
    else:
        for heads, columns, kernel, _ in _kernel_blocks(b, a):
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
    grad_a, grad_b, grad_v = (torch.zeros_like(x) for x in (a, b, v))
    row_sums = torch.zeros_like(a[..., :1])
    if a.size(1) >= b.size(1):
        for heads, rows, kernel, s in _kernel_blocks(a, b):
            grad_v[heads].baddbmm_(kernel.mT, grad[heads, rows])
            torch.bmm(grad[heads, rows], v[heads].mT, out=s).mul_(kernel)
            row_sums[heads, rows] = s.sum(-1, keepdim=True)
            grad_a[heads, rows] = s @ b[heads]
            grad_b[heads].baddbmm_(s.mT, a[heads, rows])
    else:
        for heads, columns, kernel, s in _kernel_blocks(b, a):
            grad_v[heads, columns] = kernel @ grad[heads]
            torch.bmm(v[heads, columns], grad[heads].mT, out=s).mul_(kernel)
            row_sums[heads] += s.sum(-2).unsqueeze(-1)
            grad_b[heads, columns] = s @ a[heads]
            grad_a[heads].baddbmm_(s.mT, b[heads, columns])
    grad_a -= row_sums * a
    # the column sums of S are those of the channels of v * K^T G
    grad_b -= (v * grad_v).sum(-1, keepdim=True) * b
    return tuple(
        g.view(shape) for g, shape in zip((grad_a, grad_b, grad_v), shapes))


def _kernel_blocks(rows, columns):
    """Blocks of the kernel matrix: which heads, which rows, the entries, and room
    for as many more. The next block takes the memory of the last one."""
    heads, num_rows, _ = rows.shape
    entries = _BLOCK_ENTRIES.get(rows.device.type, 2**19)
    rows_at_once = min(max(entries // columns.size(1), 1), num_rows)
    heads_at_once = max(entries // (rows_at_once * columns.size(1)), 1)
    # the exponents -|x - y|^2 / 2 as one product
    of_left, of_right = _minus_half_square(rows), _minus_half_square(columns)
    left = torch.cat((rows, torch.ones_like(of_left), of_left), dim=-1)
    right = torch.cat((columns, of_right, torch.ones_like(of_right)), dim=-1)
    memory = rows.new_empty(
        2, min(heads_at_once, heads), rows_at_once, columns.size(1))
    for head in range(0, heads, heads_at_once):
        of_heads = slice(head, head + heads_at_once)
        for row in range(0, num_rows, rows_at_once):
            of_rows = slice(row, row + rows_at_once)
            part = left[of_heads, of_rows]
            kernel, room = memory[:, :part.size(0), :part.size(1)]
            torch.bmm(part, right[of_heads].mT, out=kernel)
            # rounding can make a distance negative
            yield of_heads, of_rows, kernel.clamp_(max=0).exp_(), room


def _minus_half_square(x):
    return -x.square().sum(-1, keepdim=True) / 2
