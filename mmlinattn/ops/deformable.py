"""Deformable convolution and attention.

Letters: D, channels out; k, points of a kernel; G, groups of offsets; h, heads.
Steps are pairs, rows before columns: strides, padding, dilation. Options that the
shapes of tensors say already, such as the size of a kernel, are not looked at.
"""

from functools import partial
from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch.nn.functional import grid_sample
from torchvision.ops import deform_conv2d

from .common import add_gradients, wide


class Steps(NamedTuple):
    """How a kernel moves over a map, rows before columns."""

    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]


def deform_conv_forward(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    output: Tensor,
    columns: Tensor,
    ones: Tensor,
    *,
    dH: int,
    dW: int,
    padH: int,
    padW: int,
    dilationH: int,
    dilationW: int,
    **_: int,
) -> None:
    """Fill the output with a convolution whose points are shifted.

    Source: Dai et al., Deformable Convolutional Networks, ICCV 2017, equation 2.

    Args:
        input (Tensor): Maps (N, C, H, W).
        weight (Tensor): (D, C / groups, rows, columns).
        offset (Tensor): (N, 2·G·k, H', W'), y and x in pixels.
        output (Tensor): (N, D, H', W').
        columns (Tensor): Space that mmcv's kernels need.
        ones (Tensor): The same.
        dH (int): Stride of rows; ``dW``, of columns.
        padH (int): Padding of rows; ``padW``, of columns.
        dilationH (int): Dilation of rows; ``dilationW``, of columns.
    """
    steps = Steps((dH, dW), (padH, padW), (dilationH, dilationW))
    output.copy_(deform_conv2d(wide(input), _safe(offset), wide(weight), None, *steps))


def _safe(offset: Tensor) -> Tensor:
    """Return offsets without NaN, at which torchvision would read beyond the maps."""
    return wide(offset).nan_to_num(-1e8, 1e8, -1e8)


def deform_conv_backward_input(
    input: Tensor,
    offset: Tensor,
    grad_output: Tensor,
    grad_input: Tensor,
    grad_offset: Tensor,
    weight: Tensor,
    columns: Tensor,
    *,
    dH: int,
    dW: int,
    padH: int,
    padW: int,
    dilationH: int,
    dilationW: int,
    **_: int,
) -> None:
    """Add the gradients of :func:`deform_conv_forward` by maps and offsets. ``columns``
    takes the one by weights to the function below, which mmcv calls next."""
    steps = Steps((dH, dW), (padH, padW), (dilationH, dilationW))
    by_input, by_weight, by_offset, *_others = _gradients(
        steps, grad_output, input, weight, offset
    )
    grad_input += by_input
    grad_offset += by_offset
    columns.resize_(by_weight.shape).copy_(by_weight)


def deform_conv_backward_parameters(
    input: Tensor,
    offset: Tensor,
    grad_output: Tensor,
    grad_weight: Tensor,
    columns: Tensor,
    ones: Tensor,
    *,
    dH: int,
    dW: int,
    padH: int,
    padW: int,
    dilationH: int,
    dilationW: int,
    scale: float,
    **_: int,
) -> None:
    """Add the gradient of :func:`deform_conv_forward` by weights, times ``scale``."""
    by_weight = columns
    if columns.shape != grad_weight.shape:
        steps = Steps((dH, dW), (padH, padW), (dilationH, dilationW))
        weight = torch.zeros_like(grad_weight)
        by_weight = _gradients(steps, grad_output, input, weight, offset)[1]
    grad_weight += scale * by_weight


def _gradients(
    steps: Steps,
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Optional[Tensor] = None,
) -> tuple[Tensor, ...]:
    """Return the gradients by maps, weights, offsets, mask and bias, without autograd,
    which would compute the convolution once more."""
    input, weight, offset = wide(input), wide(weight), _safe(offset)
    with_mask = mask is not None
    mask = input.new_zeros(len(input), 0) if mask is None else wide(mask)
    bias = input.new_zeros(len(weight))
    groups = input.shape[1] // weight.shape[1]
    offset_groups = offset.shape[1] // (2 * weight[0, 0].numel())
    numbers = [*steps.stride, *steps.padding, *steps.dilation, groups, offset_groups]
    return torch.ops.torchvision._deform_conv2d_backward(
        wide(grad_output), input, weight, offset, mask, bias, *numbers, with_mask
    )


def modulated_deform_conv_forward(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    ones: Tensor,
    offset: Tensor,
    mask: Tensor,
    output: Tensor,
    columns: Tensor,
    *,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    with_bias: bool,
    **_: int,
) -> None:
    """Fill the output with a convolution whose points are shifted and weighted.

    Source: Zhu et al., Deformable ConvNets v2, CVPR 2019, equation 1. Beside what
    :func:`deform_conv_forward` takes, there are the bias (D,) and the mask
    (N, G·k, H', W').
    """
    steps = Steps((stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w))
    output.copy_(
        deform_conv2d(
            wide(input),
            _safe(_first(offset, output)),
            wide(weight),
            wide(bias) if with_bias else None,
            *steps,
            wide(_first(mask, output)),
        )
    )


def _first(maps: Tensor, output: Tensor) -> Tensor:
    """Return an image's first entries, in the size of the output; DyHead's maps are
    larger."""
    size = maps.shape[1] * output[0, 0].numel()
    return maps.flatten(1)[:, :size].view(*maps.shape[:2], *output.shape[2:])


def modulated_deform_conv_backward(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    ones: Tensor,
    offset: Tensor,
    mask: Tensor,
    columns: Tensor,
    grad_input: Tensor,
    grad_weight: Tensor,
    grad_bias: Tensor,
    grad_offset: Tensor,
    grad_mask: Tensor,
    grad_output: Tensor,
    *,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    **_: int,
) -> None:
    """Add the gradients of :func:`modulated_deform_conv_forward`."""
    steps = Steps((stride_h, stride_w), (pad_h, pad_w), (dilation_h, dilation_w))
    by_input, by_weight, by_offset, by_mask, by_bias = _gradients(
        steps,
        grad_output,
        input,
        weight,
        _first(offset, grad_output),
        _first(mask, grad_output),
    )
    grad_input += by_input
    grad_weight += by_weight
    grad_bias += by_bias[: len(grad_bias)]  # mmcv's is empty without a bias
    _first(grad_offset, grad_output).add_(by_offset)
    _first(grad_mask, grad_output).add_(by_mask)


def ms_deform_attn_forward(
    value: Tensor,
    spatial_shapes: Tensor,
    level_start_index: Tensor,
    locations: Tensor,
    weights: Tensor,
    *,
    im2col_step: int,
) -> Tensor:
    """Return the weighted sum of points of several maps, (N, Q, h·d).

    Source: Zhu et al., Deformable DETR, ICLR 2021, equation 3.

    Args:
        value (Tensor): Pixels of all maps (N, K, h, d).
        spatial_shapes (Tensor): Heights and widths of L maps (L, 2).
        level_start_index (Tensor): Their first pixels (L,).
        locations (Tensor): x and y of points (N, Q, h, L, P, 2), from 0 to 1.
        weights (Tensor): The points' weights (N, Q, h, L, P).
        im2col_step (int): Images that mmcv's kernels take at once.
    """
    output = _attend(
        spatial_shapes.tolist(), wide(value), wide(locations), wide(weights)
    )
    return output.to(value.dtype)


def _attend(
    shapes: list[list[int]], value: Tensor, locations: Tensor, weights: Tensor
) -> Tensor:
    images, _, heads, channels = value.shape
    output = torch.zeros((), device=value.device)
    levels = value.split([height * width for height, width in shapes], 1)
    for level, pixels in enumerate(levels):
        maps = pixels.permute(0, 2, 3, 1).reshape(-1, channels, *shapes[level])
        grid = 2 * locations[:, :, :, level].transpose(1, 2).flatten(0, 1) - 1
        weight = weights[:, :, :, level].transpose(1, 2).flatten(0, 1)[:, None]
        points = grid_sample(maps, grid, align_corners=False)
        output = output + (points * weight).sum(-1)
    return output.view(images, heads * channels, -1).transpose(1, 2).contiguous()


def ms_deform_attn_backward(
    value: Tensor,
    spatial_shapes: Tensor,
    level_start_index: Tensor,
    locations: Tensor,
    weights: Tensor,
    grad_output: Tensor,
    grad_value: Tensor,
    grad_locations: Tensor,
    grad_weights: Tensor,
    *,
    im2col_step: int,
) -> None:
    """Add the gradients of :func:`ms_deform_attn_forward`."""
    add_gradients(
        [grad_value, grad_locations, grad_weights],
        partial(_attend, spatial_shapes.tolist()),
        [value, locations, weights],
        grad_output,
    )
