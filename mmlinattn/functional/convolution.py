"""Depthwise convolution with a fast backward pass.

Legend: B batch, C channels, (H, W) map, k kernel side.
"""

from typing import Any, Optional

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn.functional import conv2d, pad
from torch.nn.grad import conv2d_weight

from .maps import unflatten
from .tracing import apply, is_exported, is_traced


def depthwise_conv2d(
    x: Tensor, weight: Tensor, bias: Optional[Tensor] = None
) -> Tensor:
    """Convolve each channel with its own filter. The map keeps its size.

    On a CPU, the gradient of the input is computed as a convolution with mirrored
    filters. PyTorch's own gradient takes up to 300 times as long (torch 2.1, maps with
    channels last), but half as long on a GPU.

    Args:
        x (Tensor): (B, C, H, W).
        weight (Tensor): (C, 1, k, k), k odd.
        bias (Tensor, optional): (C, ).

    Returns:
        Tensor: (B, C, H, W).
    """
    if x.is_cuda:
        large = weight.size(-1) > 5  # slow with channels last
        return _convolve(x.contiguous() if large else x, weight, bias)
    return apply(_DepthwiseConv2d, x, weight, bias)


def dynamic_conv2d(x: Tensor, filters: Tensor) -> Tensor:
    """Convolve each channel of each image with its own filter.

    Args:
        x (Tensor): (B, C, H, W).
        filters (Tensor): (B, C, k, k), k odd.

    Returns:
        Tensor: (B, C, H, W).
    """
    if not is_exported():
        maps = x.flatten(0, 1).unsqueeze(0)
        return depthwise_conv2d(maps, filters.flatten(0, 1).unsqueeze(1)).view_as(x)
    # an exported file knows neither the number of images nor that of filters
    height, width = x.shape[-2:]
    rows = [row.unbind(-1) for row in filters.unbind(-2)]
    x = pad(x, [len(rows) // 2] * 4)
    first, *others = [
        factor[..., None, None] * x[..., i : i + height, j : j + width]
        for i, row in enumerate(rows)
        for j, factor in enumerate(row)
    ]
    return sum(others, first)


def filters_gradient(x: Tensor, grad: Tensor, side: int) -> Tensor:
    """Return inner products of each channel's gradient and its shifted input.

    They are the gradient of the filters of :func:`dynamic_conv2d`.

    Args:
        x (Tensor): The input, (B, C, H, W).
        grad (Tensor): The gradient of the output, (B, C, H, W).
        side (int): k, odd.

    Returns:
        Tensor: (B, C, k, k).
    """
    if not is_traced():
        channels = [y.flatten(0, 1).unsqueeze(0) for y in (x, grad)]
        return unflatten(apply(_FiltersGradient, *channels, side), 0, x.shape[:2])
    height, width = x.shape[-2:]
    x = pad(x, [side // 2] * 4)
    products = [
        (x[..., i : i + height, j : j + width] * grad).sum((-2, -1))
        for i in range(side)
        for j in range(side)
    ]
    return unflatten(torch.stack(products, -1), -1, (side, side))


class _FiltersGradient(Function):
    """Gradient of filters (C, k, k) of maps (1, C, H, W) of inputs and gradients.

    PyTorch differentiates the gradient of a convolution channel by channel.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, grad: Tensor, side: int) -> Tensor:
        shape = (x.size(1), 1, side, side)
        options = dict(padding=side // 2, groups=x.size(1))
        return conv2d_weight(x, shape, grad, **options).squeeze(1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])
        ctx.save_for_forward(*inputs[:2])
        ctx.side = inputs[2]

    @staticmethod
    def tangent(ctx: Any, x: Optional[Tensor], grad: Optional[Tensor], _: Any) -> Any:
        """Return the derivative of the output for those of the inputs."""
        of_x, of_grad = ctx.saved_tensors
        parts = [] if x is None else [filters_gradient(x, of_grad, ctx.side)[0]]
        parts += [] if grad is None else [filters_gradient(of_x, grad, ctx.side)[0]]
        return sum(parts)

    @staticmethod
    def backward(ctx: Any, of_filters: Tensor) -> tuple[Optional[Tensor], ...]:
        x, grad = ctx.saved_tensors
        of_x = of_grad = None
        filters = of_filters.unsqueeze(1)
        if ctx.needs_input_grad[0]:
            of_x = depthwise_conv2d(grad, filters.flip(-2, -1))
        if ctx.needs_input_grad[1]:
            of_grad = depthwise_conv2d(x, filters)
        return of_x, of_grad, None


class _DepthwiseConv2d(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        return _convolve(x, weight, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])
        ctx.save_for_forward(*inputs[:2])

    @staticmethod
    def tangent(
        ctx: Any, x: Optional[Tensor], weight: Optional[Tensor], bias: Optional[Tensor]
    ) -> Any:
        """Return the derivative of the output for those of the inputs."""
        of_x, of_weight = ctx.saved_tensors
        parts = [] if x is None else [_convolve(x, of_weight)]
        parts += [] if weight is None else [_convolve(of_x, weight)]
        if bias is not None:
            parts.append(bias[:, None, None].expand(of_x.shape))
        return sum(parts)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Optional[Tensor], ...]:
        x, weight = ctx.saved_tensors
        grad_x = grad_weight = grad_bias = None
        # autocast may have lowered the precision of the output
        if ctx.needs_input_grad[0]:
            mirrored = weight.to(grad.dtype).flip(-2, -1)
            grad_x = _convolve(grad, mirrored).to(x.dtype)
        if ctx.needs_input_grad[1]:
            options = dict(padding=weight.size(-1) // 2, groups=x.size(1))
            x = x.to(grad.dtype)
            grad_weight = conv2d_weight(x, weight.shape, grad, **options)
            grad_weight = grad_weight.to(weight.dtype)
        if ctx.needs_input_grad[2]:
            grad_bias = grad.sum((0, 2, 3)).to(weight.dtype)
        return grad_x, grad_weight, grad_bias


def _convolve(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    padding = [weight.size(-1) // 2] * 2
    return conv2d(x, weight, bias, padding=padding, groups=x.size(1))
