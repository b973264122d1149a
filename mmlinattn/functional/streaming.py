"""Products with a Gaussian kernel matrix that is only ever there in blocks.

They are plain PyTorch, for any device and floating-point type, and recompute
the blocks where they are needed again: memory is that of the inputs and outputs.

Legend: ... batch and heads, M rows, K columns, d channels of tokens, e channels
of values.
"""

from math import ceil, prod

import torch

# Entries of a block. On a CPU it should stay in the cache between the
# operations on it, and below the 32 MiB from which on malloc asks the system for
# new memory every time; a GPU needs more to be busy.
_BLOCK_ENTRIES = dict(cpu=2**22, cuda=2**25)


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
        for heads, columns, kernel, _ in _kernel_blocks(b, a, across=True):
            out[heads].baddbmm_(kernel, v[heads, columns])
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
    # two of three products read the blocks row by row, which is faster
    if a.size(1) >= b.size(1):
        for heads, rows, kernel, s in _kernel_blocks(a, b, across=True):
            grad_v[heads].baddbmm_(kernel, grad[heads, rows])
            torch.bmm(v[heads], grad[heads, rows].mT, out=s).mul_(kernel)
            row_sums[heads, rows] = s.sum(-2).unsqueeze(-1)
            grad_b[heads].baddbmm_(s, a[heads, rows])
            grad_a[heads, rows] = s.mT @ b[heads]
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
    return tuple(g.view(shape) for g, shape in zip((grad_a, grad_b, grad_v), shapes))


def both_products_grad(a, b, v, y, grad_x, grad_out, x, grad_y):
    r"""Gradients of the products :math:`x = K v` and :math:`out = K^T y` together.

    Every block of K is visited once for both: with :math:`S = K \circ (\nabla_x
    v^T + y \nabla_{out}^T)`, gradients are those of :func:`gaussian_product_grad`.

    Args:
        a (Tensor): (..., M, d).
        b (Tensor): (..., K, d), K much greater than M.
        v (Tensor): (..., K, e).
        y (Tensor): (..., M, e).
        grad_x (Tensor): Gradient of x, (..., M, e).
        grad_out (Tensor): Gradient of out, (..., K, e).
        x (Tensor): (..., M, e).
        grad_y (Tensor): Gradient of y, K times ``grad_out``, (..., M, e).

    Returns:
        tuple[Tensor]: Gradients of a, b and v.
    """
    shapes = a.shape, b.shape, v.shape
    # the row sums of S are those of the channels of two known products
    row_sums = (grad_x * x + y * grad_y).sum(-1, keepdim=True).flatten(0, -3)
    weights = torch.cat((grad_x, y), dim=-1).flatten(0, -3)
    a, b, v, grad_x, grad_out = (t.flatten(0, -3) for t in (a, b, v, grad_x, grad_out))
    grad_a = torch.zeros_like(a)
    grad_b, grad_v = torch.empty_like(b), torch.empty_like(v)
    for heads, columns, kernel, s in _kernel_blocks(b, a):
        here = heads, columns
        torch.bmm(kernel, grad_x[heads], out=grad_v[here])
        values = torch.cat((v[here], grad_out[here]), dim=-1)
        torch.bmm(values, weights[heads].mT, out=s).mul_(kernel)
        grad_a[heads].baddbmm_(s.mT, b[here])
        torch.bmm(s, a[heads], out=grad_b[here])
        grad_b[here].addcmul_(s.sum(-1, keepdim=True), b[here], value=-1)
    grad_a -= row_sums * a
    return tuple(g.view(shape) for g, shape in zip((grad_a, grad_b, grad_v), shapes))


def _kernel_blocks(many, few, across=False):
    """Blocks of the kernel matrix: which heads, which of the many tokens, the
    entries, and room for as many more. The next block takes the memory of the
    last one.

    The many tokens are a block's rows; its columns if ``across``.
    """
    heads, num_many, _ = many.shape
    entries = _BLOCK_ENTRIES.get(many.device.type, _BLOCK_ENTRIES['cpu'])
    # as many blocks as it takes, of one size
    num_blocks = ceil(num_many * few.size(1) / entries)
    many_at_once = ceil(num_many / num_blocks)
    heads_at_once = min(max(entries // (many_at_once * few.size(1)), 1), heads)
    # the exponents -|x - y|^2 / 2 as one product; of the many tokens in blocks too,
    # as memory that is new costs more than arithmetic
    of_few = _minus_half_square(few)
    few = torch.cat((few, of_few, torch.ones_like(of_few)), dim=-1)
    size = heads_at_once * many_at_once * few.size(1)
    memory = many.new_empty(size), many.new_empty(size)
    for head in range(0, heads, heads_at_once):
        of_heads = slice(head, head + heads_at_once)
        for start in range(0, num_many, many_at_once):
            of_tokens = slice(start, start + many_at_once)
            left, right = many[of_heads, of_tokens], few[of_heads]
            of_left = _minus_half_square(left)
            left = torch.cat((left, torch.ones_like(of_left), of_left), dim=-1)
            if across:
                left, right = right, left
            shape = (left.size(0), left.size(1), right.size(1))
            kernel, room = (part[: prod(shape)].view(shape) for part in memory)
            torch.bmm(left, right.mT, out=kernel)
            # rounding can make a distance negative
            yield of_heads, of_tokens, kernel.clamp_(max=0).exp_(), room


def _minus_half_square(x):
    return -x.square().sum(-1, keepdim=True) / 2
