"""The interface of products with a Gaussian kernel matrix that is never held whole.

Legend: B batch, h heads, M rows, N columns of the kernel matrix K, d head dim,
e channels of values.
"""

import os
from typing import Optional, Protocol

from torch import Tensor

from ..tracing import constant_when_compiled
from . import triton
from .streaming import StreamedProducts


class Products(Protocol):
    r"""Products with K, :math:`K_{ij} = \exp(-\|a_i - b_j\|^2 / 2)`.

    Sums and results are in float32 or more.
    """

    def product(self, a: Tensor, b: Tensor, v: Tensor) -> Tensor:
        """K v.

        Args:
            a (Tensor): (B, h, M, d).
            b (Tensor): (B, h, N, d).
            v (Tensor): (B, h, N, e).

        Returns:
            Tensor: (B, h, M, e).
        """

    def product_grad(
        self, a: Tensor, b: Tensor, v: Tensor, grad: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        r"""Gradients of :meth:`product`.

        With G the gradient of the product and :math:`S = K \circ G v^T`:
        :math:`\nabla_v = K^T G`, :math:`\nabla_a = S b - diag(S 1) a`,
        :math:`\nabla_b = S^T a - diag(S^T 1) b`.

        Args:
            a, b, v (Tensor): As for :meth:`product`.
            grad (Tensor): G, (B, h, M, e).

        Returns:
            tuple[Tensor]: Gradients of a, b and v.
        """

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
        r"""Gradients of the products :math:`x = K v` and :math:`out = K^T y`.

        They are those of :meth:`product_grad` with :math:`S = K \circ
        (\nabla_x v^T + y \nabla_{out}^T)`.

        Args:
            a, b, v (Tensor): As for :meth:`product`.
            y (Tensor): (B, h, M, e).
            grad_x (Tensor): Gradient of x, (B, h, M, e).
            grad_out (Tensor): Gradient of out, (B, h, N, e).
            x (Tensor): The product, (B, h, M, e).
            grad_y (Tensor): Gradient of y, K ``grad_out``, (B, h, M, e).

        Returns:
            tuple[Tensor]: Gradients of a, b and v.
        """


def pick_products(*tensors: Tensor, parts: Optional[int] = None) -> Products:
    """Picks the implementation for some operands.

    Args:
        tensors (Tensor): The operands, (..., d).
        parts (int, optional): Float16 numbers that the kernels round an entry of K
            to the sum of, 1 or 2. Default: 1 for half precision, 2 for float32. Plain
            PyTorch computes in float32 or more.

    Returns:
        Products: The Triton kernels where they can run, plain PyTorch elsewhere;
        the environment variable ``MMLINATTN_KERNELS`` forces 'triton' or 'torch'.

    Raises:
        ValueError: If ``MMLINATTN_KERNELS`` is none of 'auto', 'triton' and
            'torch'.
        RuntimeError: If it is 'triton' and the kernels can't run.
    """
    if kernels_run(*tensors):
        from .triton.sweep import TritonProducts  # imports Triton

        return TritonProducts(parts)
    if _choice() == 'triton':
        raise RuntimeError(
            'MMLINATTN_KERNELS is triton, but the kernels need Triton 3, an '
            'NVIDIA GPU of compute capability 8.0, float32 or less and a head '
            f'dim of at most {triton.MAX_DIM}; got {tensors[0].dtype} on '
            f'{tensors[0].device} with shapes '
            f'{[tuple(x.shape) for x in tensors]}'
        )
    return StreamedProducts()


def kernels_run(*tensors: Tensor, max_dim: float = triton.MAX_DIM) -> bool:
    """Whether Triton kernels compute with these operands, as
    :func:`~.triton.available` and ``MMLINATTN_KERNELS`` say."""
    return _choice() != 'torch' and triton.available(*tensors, max_dim=max_dim)


@constant_when_compiled
def _choice() -> str:
    choice = os.environ.get('MMLINATTN_KERNELS', 'auto')
    if choice not in ('auto', 'triton', 'torch'):
        raise ValueError(
            f"MMLINATTN_KERNELS must be 'auto', 'triton' or 'torch', got {choice!r}"
        )
    return choice
