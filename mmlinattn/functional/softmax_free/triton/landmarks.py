"""The Gaussian kernel matrix of landmarks with themselves, written once.

Distances are sums of squared differences in float32: the matrix is symmetric, and its
diagonal 1, exactly.

Legend: B batch, h heads, m landmarks, d head dim.
"""

import torch
import triton
import triton.language as tl

_BLOCK = 64

_LIBRARY = torch.library.Library('mmlinattn', 'FRAGMENT')
_LIBRARY.define('own_kernel(Tensor q) -> Tensor')


@triton.jit(do_not_specialize=['size'])
def _own_kernel(q, out, size, DIM: tl.constexpr, BLOCK: tl.constexpr):
    blocks = tl.cdiv(size, BLOCK)
    matrix = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) // blocks * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    q += matrix * DIM * size
    square = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(DIM):
        row = tl.load(q + i, mask=i < size, other=0.0)
        column = tl.load(q + j, mask=j < size, other=0.0)
        difference = row[:, None] - column[None, :]
        square += difference * difference
        q += size
    place = (matrix * size + i[:, None]) * size + j[None, :]
    inside = (i < size)[:, None] & (j < size)[None, :]
    tl.store(out + place, tl.exp(-square / 2), mask=inside)


def own_kernel(q):
    """As :func:`~mmlinattn.functional.softmax_free.kernel.gaussian_kernel` of q alone.

    Args:
        q (Tensor): Float32, (..., m, d).

    Returns:
        Tensor: (..., m, m).
    """
    return torch.ops.mmlinattn.own_kernel(q)


def _own(q):
    size, dim = q.shape[-2:]
    channels = q.mT.contiguous()
    out = _own_shape(q)
    blocks = triton.cdiv(size, _BLOCK)
    grid = blocks**2, q.shape[:-2].numel()
    with torch.cuda.device_of(q):
        _own_kernel[grid](channels, out, size, DIM=dim, BLOCK=_BLOCK, num_warps=8)
    return out


def _own_shape(q):
    return q.new_empty(*q.shape[:-1], q.size(-2))


for _device in ('CPU', 'CUDA'):
    _LIBRARY.impl('own_kernel', _own, _device)
_LIBRARY.impl('own_kernel', _own_shape, 'Meta')
