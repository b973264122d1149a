"""Products with a Gaussian kernel matrix that is computed block by block.

They are plain PyTorch, for any device and floating-point type, and compute blocks
again where they need them again: memory is that of the inputs and outputs.

Legend: ... batch and heads, M rows, N columns of the kernel matrix K, d channels of
tokens, e channels of values.
"""

from collections.abc import Iterator
from math import ceil, prod
from typing import Optional

import torch
from torch import Tensor

from ..precision import at_least_float32

# Entries of a block, which should stay in a cache between operations: 16 MiB in
# float32. Two of them, as gradients have, fit the 40 MiB of an A100's L2, and are
# enough to keep it busy. On a CPU, malloc asks the system for new memory every time
# from 32 MiB on.
_BLOCK_ENTRIES = 2**22


class StreamedProducts:
    """:class:`~.products.Products` in plain PyTorch, in float32 or more."""

    def product(self, a: Tensor, b: Tensor, v: Tensor) -> Tensor:
        a, b, v = at_least_float32(a, b, v)
        out = v.new_zeros(*a.shape[:-1], v.size(-1)).flatten(0, -3)
        shape = a.shape[:-1] + v.shape[-1:]
        a, b, v = (x.flatten(0, -3) for x in (a, b, v))
        if a.size(1) >= b.size(1):
            for heads, rows, kernel in _kernel_blocks(a, b):
                out[heads, rows] = kernel @ v[heads]
        else:
            for heads, columns, kernel in _kernel_blocks(b, a, across=True):
                out[heads].baddbmm_(kernel, v[heads, columns])
        return out.view(shape)

    def product_grad(
        self, a: Tensor, b: Tensor, v: Tensor, grad: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        a, b, v, grad = at_least_float32(a, b, v, grad)
        shapes = a.shape, b.shape, v.shape
        a, b, v, grad = (x.flatten(0, -3) for x in (a, b, v, grad))
        grad_a, grad_b, grad_v = (torch.zeros_like(x) for x in (a, b, v))
        row_sums = torch.zeros_like(a[..., :1])
        room = _Room()
        # two of the three products read blocks row by row, which is faster
        if a.size(1) >= b.size(1):
            for heads, rows, kernel in _kernel_blocks(a, b, across=True):
                s = room.like(kernel)
                grad_v[heads].baddbmm_(kernel, grad[heads, rows])
                torch.bmm(v[heads], grad[heads, rows].mT, out=s).mul_(kernel)
                row_sums[heads, rows] = s.sum(-2).unsqueeze(-1)
                grad_b[heads].baddbmm_(s, a[heads, rows])
                grad_a[heads, rows] = s.mT @ b[heads]
        else:
            for heads, columns, kernel in _kernel_blocks(b, a):
                s = room.like(kernel)
                grad_v[heads, columns] = kernel @ grad[heads]
                torch.bmm(v[heads, columns], grad[heads].mT, out=s).mul_(kernel)
                row_sums[heads] += s.sum(-2).unsqueeze(-1)
                grad_b[heads, columns] = s @ a[heads]
                grad_a[heads].baddbmm_(s.mT, b[heads, columns])
        grad_a -= row_sums * a
        # the column sums of S are sums over the channels of v * K^T G
        grad_b -= (v * grad_v).sum(-1, keepdim=True) * b
        of_a, of_b, of_v = shapes
        return grad_a.view(of_a), grad_b.view(of_b), grad_v.view(of_v)

    def joint_grad(
        self,
        a: Tensor,
        b: Tensor,
        v: Tensor,
        y: Tensor,
        grad_x: Tensor,
        grad_out: Tensor,
        x: Tensor,
        grad_y: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As the interface says; N should be much greater than M."""
        a, b, v, y = at_least_float32(a, b, v, y)
        grad_x, grad_out, x, grad_y = at_least_float32(grad_x, grad_out, x, grad_y)
        shapes = a.shape, b.shape, v.shape
        # the row sums of S are sums over the channels of two known products
        row_sums = (grad_x * x + y * grad_y).sum(-1, keepdim=True).flatten(0, -3)
        weights = torch.cat((grad_x, y), dim=-1).flatten(0, -3)
        a, b, v, grad_x, grad_out = (
            t.flatten(0, -3) for t in (a, b, v, grad_x, grad_out)
        )
        grad_a = torch.zeros_like(a)
        grad_b, grad_v = torch.empty_like(b), torch.empty_like(v)
        room = _Room()
        for heads, columns, kernel in _kernel_blocks(b, a):
            here, s = (heads, columns), room.like(kernel)
            torch.bmm(kernel, grad_x[heads], out=grad_v[here])
            values = torch.cat((v[here], grad_out[here]), dim=-1)
            torch.bmm(values, weights[heads].mT, out=s).mul_(kernel)
            grad_a[heads].baddbmm_(s.mT, b[here])
            torch.bmm(s, a[heads], out=grad_b[here])
            grad_b[here].addcmul_(s.sum(-1, keepdim=True), b[here], value=-1)
        grad_a -= row_sums * a
        of_a, of_b, of_v = shapes
        return grad_a.view(of_a), grad_b.view(of_b), grad_v.view(of_v)


def _kernel_blocks(
    many: Tensor, few: Tensor, across: bool = False
) -> Iterator[tuple[slice, slice, Tensor]]:
    """Blocks of the kernel matrix: which heads, which of the many tokens, and the
    entries. The next block takes the memory of the last one.

    The many tokens are a block's rows; its columns if ``across``.
    """
    heads, num_many, _ = many.shape
    # as many blocks as it takes, of one size
    num_blocks = ceil(num_many * few.size(1) / _BLOCK_ENTRIES)
    many_at_once = ceil(num_many / num_blocks)
    one_head = many_at_once * few.size(1)
    heads_at_once = min(max(_BLOCK_ENTRIES // one_head, 1), heads)
    # the exponents -|x - y|^2 / 2 as one product; of the many tokens in blocks too,
    # as memory that is new costs more than arithmetic
    of_few = _minus_half_square(few)
    few = torch.cat((few, of_few, torch.ones_like(of_few)), dim=-1)
    room = _Room()
    for head in range(0, heads, heads_at_once):
        of_heads = slice(head, head + heads_at_once)
        for start in range(0, num_many, many_at_once):
            of_tokens = slice(start, start + many_at_once)
            left, right = many[of_heads, of_tokens], few[of_heads]
            of_left = _minus_half_square(left)
            left = torch.cat((left, torch.ones_like(of_left), of_left), dim=-1)
            if across:
                left, right = right, left
            kernel = room.of(left, left.size(0), left.size(1), right.size(1))
            torch.bmm(left, right.mT, out=kernel)
            # rounding can make a distance negative
            yield of_heads, of_tokens, kernel.clamp_(max=0).exp_()


class _Room:
    """Memory that every block is written to."""

    def __init__(self) -> None:
        self.memory: Optional[Tensor] = None

    def of(self, x: Tensor, *shape: int) -> Tensor:
        """A tensor of a shape, of the dtype and device of x. The first one must
        be the largest."""
        if self.memory is None:
            self.memory = x.new_empty(prod(shape))
        return self.memory[: prod(shape)].view(shape)

    def like(self, x: Tensor) -> Tensor:
        return self.of(x, *x.shape)


def _minus_half_square(x: Tensor) -> Tensor:
    return -x.square().sum(-1, keepdim=True) / 2
