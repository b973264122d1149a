r"""The kernel itself beside its approximation, inside of windows of the map.

Legend: B batch, h heads, n windows of w tokens, m features, d head dim, e channels of
values.
"""

from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import Function

from ..precision import autocast_disabled, full_precision
from ..tracing import apply
from .kernel import kernel_by_norms


def add_missing(far: Tensor, q: Tensor, norms: Tensor, u: Tensor, v: Tensor) -> Tensor:
    r"""Adds :math:`(K - U U^T) V` of each window to what comes from all tokens.

    The backward pass computes the matrices again: they would be the largest that a
    training keeps.

    Args:
        far (Tensor): (B, h, n, w, e).
        q (Tensor): Queries, which are the keys too, (B, h, n, w, d).
        norms (Tensor): Their norms, (B, h, n, w, 1).
        u (Tensor): (B, h, n, w, m).
        v (Tensor): Values, (B, h, n, w, e).

    Returns:
        Tensor: (B, h, n, w, e).
    """
    return apply(_AddMissing, far, q, norms, u, v)


class _AddMissing(Function):
    """K and D = K - U U^T are symmetric. Queries and norms have gradients of their own,
    which autograd adds up."""

    generate_vmap_rule = True

    @staticmethod
    def forward(far: Tensor, q: Tensor, norms: Tensor, u: Tensor, v: Tensor) -> Tensor:
        with full_precision(far):
            missing = _add_product(_kernel(q.contiguous(), norms), u, u.mT, -1)
            return _add_product(far, missing, v)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def tangent(ctx: Any, of_far: Optional[Tensor], *tangents: Optional[Tensor]) -> Any:
        """Derivative of the output for those of the inputs."""
        inputs = ctx.saved_tensors
        q, norms, u, v = inputs
        of_q, of_norms, of_u, of_v = [
            torch.zeros_like(x) if of_x is None else of_x
            for x, of_x in zip(inputs, tangents)
        ]
        with full_precision(u):
            kernel = _kernel(q, norms)
            of_exponents = _with_transpose(of_q @ q.mT - of_norms * norms)
            change = kernel * of_exponents - _with_transpose(of_u @ u.mT)
            out = change @ v + (kernel - u @ u.mT) @ of_v
        return out if of_far is None else of_far + out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        q, norms, u, v = ctx.saved_tensors
        with autocast_disabled(grad), full_precision(grad):
            q = q.contiguous()
            kernel = _kernel(q, norms)
            grad_v = _add_product(kernel, u, u.mT, -1) @ grad
            of_kernel = _with_transpose(grad @ v.mT)
            grad_u = -of_kernel @ u
            of_exponents = of_kernel * kernel
            grad_norms = -norms * of_exponents.sum(-1, keepdim=True)
            return grad, of_exponents @ q, grad_norms, grad_u, grad_v


def _kernel(q: Tensor, norms: Tensor) -> Tensor:
    """K, (B, h, n, w, w)."""
    return kernel_by_norms(q, norms, q.size(-2))


def _with_transpose(x: Tensor) -> Tensor:
    return x + x.mT


def _add_product(x: Tensor, y: Tensor, z: Tensor, alpha: int = 1) -> Tensor:
    """x + alpha y z, of matrices (B, h, n, ...)."""
    factors = (matrix.flatten(0, 2) for matrix in (x, y, z))
    return torch.baddbmm(*factors, alpha=alpha).view(x.shape)
