"""Deformable convolution and attention.

Letters: D, channels out; k, points of a kernel; G, groups of offsets; h, heads.
"""

from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import grid_sample
from torchvision.ops import deform_conv2d

from .common import add_gradients, wide

# strides, padding and dilation, rows before columns
STEPS = ('dH', 'dW', 'padH', 'padW', 'dilationH', 'dilationW')
MODULATED = ('stride_h', 'stride_w', 'pad_h', 'pad_w', 'dilation_h', 'dilation_w')


def deform_conv_forward(*tensors: Tensor, **options: int) -> None:
    """Fill the output with a convolution whose points are shifted.

    Source: Dai et al., Deformable Convolutional Networks, ICCV 2017, equation 2.

    Args:
        tensors: Maps (N, C, H, W); weights (D, C / groups, rows, columns); offsets
            (N, 2·G·k, H', W'), y and x in pixels; the output (N, D, H', W'); scratch.
        options: Strides, padding and dilation; the shapes of tensors say the rest.
    """
    input, weight, offset, output, *_ = tensors
    steps = [options[name] for name in STEPS]
    pairs = None, steps[:2], steps[2:4], steps[4:]
    output.copy_(deform_conv2d(wide(input), _safe(offset), wide(weight), *pairs))


def _safe(offset: Tensor) -> Tensor:
    """Offsets without NaN, at which torchvision would read beyond the maps."""
    return wide(offset).nan_to_num(-1e8, 1e8, -1e8)


def deform_conv_backward_input(*tensors: Tensor, **options: int) -> None:
    """Add the gradients of :func:`deform_conv_forward` by maps and offsets. The last
    tensor takes the one by weights to the function below, which mmcv calls next."""
    input, offset, grad_output, grad_input, grad_offset, weight, scratch = tensors
    steps = [options[name] for name in STEPS]
    grads = _gradients(steps, grad_output, input, weight, offset)
    grad_input += grads[0]
    grad_offset += grads[2]
    scratch.resize_(grads[1].shape).copy_(grads[1])


def deform_conv_backward_parameters(*tensors: Tensor, **options: int) -> None:
    """Add the gradient of :func:`deform_conv_forward` by weights, times ``scale``."""
    input, offset, grad_output, grad_weight, scratch, _ = tensors
    if scratch.shape != grad_weight.shape:
        steps, weight = [options[x] for x in STEPS], torch.zeros_like(grad_weight)
        scratch = _gradients(steps, grad_output, input, weight, offset)[1]
    grad_weight += options['scale'] * scratch


def _gradients(steps: list[int], *tensors: Tensor) -> tuple[Tensor, ...]:
    """The gradients by maps, weights, offsets, mask and bias, without autograd, which
    would compute the convolution once more."""
    grad_output, input, weight, offset, *mask = (wide(x) for x in tensors)
    offset = _safe(offset)
    groups = input.shape[1] // weight.shape[1]
    offset_groups = offset.shape[1] // (2 * weight[0, 0].numel())
    options = *steps, groups, offset_groups, bool(mask)
    inputs = input, weight, offset, *(mask or [input.new_zeros(len(input), 0)])
    return torch.ops.torchvision._deform_conv2d_backward(
        grad_output, *inputs, input.new_zeros(len(weight)), *options
    )


def modulated_deform_conv_forward(*tensors: Tensor, **options: int) -> None:
    """Fill the output with a convolution whose points are shifted and weighted.

    Source: Zhu et al., Deformable ConvNets v2, CVPR 2019, equation 1. The tensors are
    maps, weights, bias (D,), scratch, offsets, mask (N, G·k, H', W'), the output and
    scratch: see :func:`deform_conv_forward`.
    """
    input, weight, bias, _, offset, mask, output, _ = tensors
    steps, with_bias = [options[name] for name in MODULATED], options['with_bias']
    pairs = wide(bias) if with_bias else None, steps[:2], steps[2:4], steps[4:]
    tensors = wide(input), _safe(_first(offset, output)), wide(weight)
    output.copy_(deform_conv2d(*tensors, *pairs, wide(_first(mask, output))))


def _first(maps: Tensor, output: Tensor) -> Tensor:
    """An image's first entries, in the size of the output; DyHead's maps are larger."""
    size = maps.shape[1] * output[0, 0].numel()
    return maps.flatten(1)[:, :size].view(*maps.shape[:2], *output.shape[2:])


def modulated_deform_conv_backward(*tensors: Tensor, **options: int) -> None:
    """Add the gradients of :func:`modulated_deform_conv_forward`."""
    input, weight, _, _, offset, mask, _, *grads, grad_output = tensors
    steps = [options[name] for name in MODULATED]
    both = [_first(x, grad_output) for x in (offset, mask)]
    found = _gradients(steps, grad_output, input, weight, *both)
    by_bias = found[4][: len(grads[2])]
    grads[3:] = [_first(x, grad_output) for x in grads[3:]]
    for grad, change in zip(grads, (*found[:2], by_bias, *found[2:4])):
        grad += change


def ms_deform_attn_forward(*tensors: Tensor, im2col_step: int) -> Tensor:
    """Return the weighted sum of points of several maps, (N, Q, h·d).

    Source: Zhu et al., Deformable DETR, ICLR 2021, equation 3.

    Args:
        tensors: Pixels of all maps (N, K, h, d); heights and widths of L maps (L, 2);
            their first pixels (L,); x and y of points (N, Q, h, L, P, 2), from 0 to 1;
            their weights (N, Q, h, L, P).
    """
    value, shapes, _, *points = tensors
    output = _attend(shapes.tolist(), wide(value), *(wide(x) for x in points))
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


def ms_deform_attn_backward(*tensors: Tensor, im2col_step: int) -> None:
    """Add the gradients of :func:`ms_deform_attn_forward`."""
    value, shapes, _, locations, weights, grad_output, *grads = tensors
    inputs, function = (value, locations, weights), partial(_attend, shapes.tolist())
    add_gradients(grads, function, inputs, grad_output)
