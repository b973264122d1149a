"""The kernel beside its approximation, inside of windows of the map.

Legend: B batch, h heads, n windows of w tokens, m features, d head dim, e channels of
values.
"""

from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import Function

from ..precision import autocast_disabled, full_precision
from .kernel import kernel_by_norms


class AddMissing(Function):
    """F + (K - U U^T) V in each window, of F and V (B, h, n, w, e), tokens
    (B, h, n, w, d), their norms (B, h, n, w, 1), and U (B, h, n, w, m).

    The backward pass computes the symmetric matrices again: they would be the largest
    that a training keeps. Autograd adds the gradient of the norms to that of the
    tokens.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(far: Tensor, x: Tensor, norms: Tensor, u: Tensor, v: Tensor) -> Tensor:
        with full_precision(far):
            return _add_product(far, _matrices(x, norms, u)[1], v)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:])
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def tangent(ctx: Any, of_far: Optional[Tensor], *tangents: Optional[Tensor]) -> Any:
        """Derivative of the output for those of the inputs."""
        x, norms, u, v = inputs = ctx.saved_tensors
        of_x, of_norms, of_u, of_v = (
            torch.zeros_like(y) if of_y is None else of_y
            for y, of_y in zip(inputs, tangents)
        )
        with full_precision(u):
            kernel, missing = _matrices(x, norms, u)
            of_kernel = kernel * _plus_transpose(of_x @ x.mT - of_norms * norms)
            change = of_kernel - _plus_transpose(of_u @ u.mT)
            out = change @ v + missing @ of_v
        return out if of_far is None else of_far + out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        x, norms, u, v = ctx.saved_tensors
        with autocast_disabled(grad), full_precision(grad):
            kernel, missing = _matrices(x, norms, u)
            of_missing = _plus_transpose(grad @ v.mT)
            of_exponents = of_missing * kernel
            of_norms = -norms * of_exponents.sum(-1, keepdim=True)
            return grad, of_exponents @ x, of_norms, -of_missing @ u, missing @ grad


def _matrices(x: Tensor, norms: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """K and K - U U^T, (B, h, n, w, w)."""
    kernel = kernel_by_norms(x.contiguous(), norms, x.size(-2))
    return kernel, _add_product(kernel, u, u.transpose(-2, -1), -1)


def _add_product(x: Tensor, y: Tensor, z: Tensor, alpha: int = 1) -> Tensor:
    """x + alpha y z, of matrices (B, h, n, ...)."""
    factors = (matrix.flatten(0, 2) for matrix in (x, y, z))
    return torch.baddbmm(*factors, alpha=alpha).view(x.shape)


def _plus_transpose(x: Tensor) -> Tensor:
    return x + x.mT
