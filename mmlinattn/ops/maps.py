"""Operators on whole maps: reassembly (CARAFE), masked convolution, PSANet's masks."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from .common import add_gradients, wide


def carafe_naive_forward(*tensors: Tensor, **options: int) -> None:
    """Fill the output with weighted sums of the pixels around each.

    Source: Wang et al., CARAFE, ICCV 2019, equation 4.

    Args:
        tensors: Maps (N, C, H, W); weights (N, g·k², s·H, s·W); output (N, C, ...).
        options: ``kernel_size`` k, odd; ``group_size`` g, groups of channels with the
            same weights; ``scale_factor`` s.
    """
    features, masks, output = tensors
    output.copy_(_reassemble(wide(features), wide(masks), **options))


def _reassemble(features: Tensor, masks: Tensor, **options: int) -> Tensor:
    images, channels, height, width = features.shape
    size, scale = options['kernel_size'], options['scale_factor']
    around = pad(features, [(size - 1) // 2] * 4)
    groups = (images, options['group_size'])
    around = around.view(*groups, -1, *around.shape[2:])[..., None, :, None]
    weights = masks.view(*groups, 1, size * size, height, scale, width, scale)
    output = torch.zeros((), device=features.device)
    for index, weight in enumerate(weights.unbind(3)):
        row, column = divmod(index, size)
        pixels = around[..., row : row + height, :, column : column + width, :]
        output = output + pixels * weight
    return output.reshape(images, channels, *masks.shape[2:])


def carafe_naive_backward(*tensors: Tensor, **options: int) -> None:
    """Add the gradients of :func:`carafe_naive_forward` by features and masks."""
    grad_output, features, masks, *grads = tensors
    inputs, function = (features, masks), lambda x, y: _reassemble(x, y, **options)
    add_gradients(grads, function, inputs, grad_output)


def carafe_forward(*tensors: Tensor, **options: int) -> None:
    """Fill the output, the last tensor, as :func:`carafe_naive_forward` does.

    The third tensor gets the features, because mmcv keeps it in their place.
    """
    features, masks, kept, _, _, output = tensors
    kept.copy_(features)
    carafe_naive_forward(features, masks, output, **options)


def carafe_backward(*tensors: Tensor, **options: int) -> None:
    """Add the gradients of :func:`carafe_forward` by features and masks."""
    carafe_naive_backward(*tensors[:3], *tensors[-2:], **options)


def masked_im2col_forward(*tensors: Tensor, **options: int) -> None:
    """Fill the output (C·kh·kw, M) with the pixels under a kernel at M places.

    Args:
        tensors: A map (1, C, H, W); rows and columns of the places (M,); the output.
        options: ``kernel_h`` kh, ``kernel_w`` kw, ``pad_h``, ``pad_w``.
    """
    maps, rows, columns, output = tensors
    height, width = options['kernel_h'], options['kernel_w']
    top, left = options['pad_h'], options['pad_w']
    around = pad(maps[0], (left, left + width, top, top + height))
    rows = rows + torch.arange(height, device=maps.device)[:, None, None]
    columns = columns + torch.arange(width, device=maps.device)[:, None]
    output.copy_(around[:, rows, columns].view_as(output))


def masked_col2im_forward(*tensors: Tensor, **size: int) -> None:
    """Write a matrix (C, M) to places, M rows and columns, of a map (1, C, H, W)."""
    matrix, rows, columns, maps = tensors
    maps[0, :, rows, columns] = matrix.to(maps.dtype)


def psamask_forward(input: Tensor, output: Tensor, **options: int) -> None:
    """Fill ``output`` with each pixel's weights of all pixels, from a mask around it.

    Source: Zhao et al., PSANet, ECCV 2018, section 3.3.

    Args:
        input (Tensor): (N, h_mask·w_mask, H, W): the mask around each pixel.
        output (Tensor): (N, H·W, H, W), weights of pixels (2nd axis) at others.
        options: ``psa_type``, 0 to collect, 1 to distribute; and sizes.
    """
    output.copy_(_spread(input, **options))


def _spread(masks: Tensor, psa_type: int, num_: int, **sizes: int) -> Tensor:
    both = [
        [sizes[name] for name in (f'{x}_feature', f'{x}_mask', f'half_{x}_mask')]
        for x in 'hw'
    ]
    (height, h_mask, _), (width, w_mask, _) = both
    masks = masks.view(num_, h_mask, w_mask, height, width)
    for axis, (size, most, half) in enumerate(both, 1):
        pixel = torch.arange(size, device=masks.device)
        place = pixel - pixel[:, None] + half  # of the column, in the row's mask
        inside = ((place >= 0) & (place < most))[..., None, None, None]
        moved = masks.movedim((axis, axis + 2), (0, 1))
        moved = moved[place.clamp(0, most - 1), pixel[:, None]] * inside
        # a mask's axis becomes one of the pixels that it weighs
        masks = moved.movedim((1, 0), (axis, axis + 2))
    masks = masks.permute(0, 3, 4, 1, 2) if psa_type else masks
    return masks.reshape(num_, height * width, height, width)


def psamask_backward(grad_output: Tensor, grad_input: Tensor, **options: int) -> None:
    """Add the gradient of :func:`psamask_forward` to ``grad_input``."""
    inputs = [torch.zeros_like(grad_input)]
    add_gradients([grad_input], lambda x: _spread(x, **options), inputs, grad_output)
