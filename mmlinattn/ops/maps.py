"""Operators on whole maps: reassembly (CARAFE), masked convolution, PSANet's masks."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from .common import add_gradients, wide


def carafe_forward(
    features: Tensor,
    masks: Tensor,
    reordered_features: Tensor,
    reordered_output: Tensor,
    reordered_masks: Tensor,
    output: Tensor,
    *,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> None:
    """Fill the output with weighted sums of the pixels around each.

    Source: Wang et al., CARAFE, ICCV 2019, equation 4.

    Args:
        features (Tensor): Maps (N, C, H, W).
        masks (Tensor): Weights (N, g·k², s·H, s·W).
        reordered_features (Tensor): Gets the features: mmcv keeps them
            for the backward pass.
        reordered_output (Tensor): Not needed here.
        reordered_masks (Tensor): Not needed here.
        output (Tensor): (N, C, s·H, s·W).
        kernel_size (int): k, odd.
        group_size (int): g, groups of channels with the same weights.
        scale_factor (int): s.
    """
    reordered_features.copy_(features)
    output.copy_(
        _reassemble(wide(features), wide(masks), kernel_size, group_size, scale_factor)
    )


def _reassemble(
    features: Tensor,
    masks: Tensor,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> Tensor:
    images, channels, height, width = features.shape
    around = pad(features, [(kernel_size - 1) // 2] * 4)
    around = around.view(images, group_size, -1, *around.shape[2:])
    around = around[..., None, :, None]
    taps = kernel_size * kernel_size
    grid = (height, scale_factor, width, scale_factor)
    weights = masks.view(images, group_size, 1, taps, *grid)
    output = torch.zeros((), device=features.device)
    for index, weight in enumerate(weights.unbind(3)):
        row, column = divmod(index, kernel_size)
        pixels = around[..., row : row + height, :, column : column + width, :]
        output = output + pixels * weight
    return output.reshape(images, channels, *masks.shape[2:])


def carafe_backward(
    grad_output: Tensor,
    features: Tensor,
    masks: Tensor,
    reordered_grad_output: Tensor,
    reordered_grad_sums: Tensor,
    reordered_grad_features: Tensor,
    reordered_grad_masks: Tensor,
    grad_features: Tensor,
    grad_masks: Tensor,
    *,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> None:
    """Add the gradients of :func:`carafe_forward` by features and masks. mmcv's kernels
    need the ``reordered`` copies, this does not."""

    def reassemble(features: Tensor, masks: Tensor) -> Tensor:
        return _reassemble(features, masks, kernel_size, group_size, scale_factor)

    add_gradients(
        [grad_features, grad_masks], reassemble, [features, masks], grad_output
    )


def masked_im2col_forward(
    maps: Tensor,
    rows: Tensor,
    columns: Tensor,
    output: Tensor,
    *,
    kernel_h: int,
    kernel_w: int,
    pad_h: int,
    pad_w: int,
) -> None:
    """Fill the output (C·kh·kw, M) with the pixels under a kernel at M places.

    Args:
        maps (Tensor): A map (1, C, H, W).
        rows (Tensor): Rows of the places (M,).
        columns (Tensor): Their columns (M,).
        output (Tensor): See above.
        kernel_h (int): kh.
        kernel_w (int): kw.
        pad_h (int): Rows of zeros above and below the map.
        pad_w (int): Columns of zeros beside it.
    """
    around = pad(maps[0], (pad_w, pad_w + kernel_w, pad_h, pad_h + kernel_h))
    rows = rows + torch.arange(kernel_h, device=maps.device)[:, None, None]
    columns = columns + torch.arange(kernel_w, device=maps.device)[:, None]
    output.copy_(around[:, rows, columns].view_as(output))


def masked_col2im_forward(
    matrix: Tensor, rows: Tensor, columns: Tensor, maps: Tensor, **_: int
) -> None:
    """Write a matrix (C, M) to places, M rows and columns, of a map (1, C, H, W), whose
    sizes mmcv tells, too."""
    maps[0, :, rows, columns] = matrix.to(maps.dtype)


def psamask_forward(
    input: Tensor,
    output: Tensor,
    *,
    psa_type: int,
    num_: int,
    h_feature: int,
    w_feature: int,
    h_mask: int,
    w_mask: int,
    half_h_mask: int,
    half_w_mask: int,
) -> None:
    """Fill ``output`` with each pixel's weights of all pixels, from a mask around it.

    Source: Zhao et al., PSANet, ECCV 2018, section 3.3.

    Args:
        input (Tensor): (N, h_mask·w_mask, H, W): the mask around each pixel.
        output (Tensor): (N, H·W, H, W), weights of pixels (2nd axis) at others.
        psa_type (int): 0 to collect, 1 to distribute.
        num_ (int): N.
        h_feature (int): H.
        w_feature (int): W.
        h_mask (int): Height of a mask.
        w_mask (int): Width of a mask.
        half_h_mask (int): Rows of a mask above its pixel.
        half_w_mask (int): Columns of a mask left of its pixel.
    """
    rows, columns = (h_feature, h_mask, half_h_mask), (w_feature, w_mask, half_w_mask)
    output.copy_(_spread(input, psa_type, rows, columns))


def _spread(
    masks: Tensor,
    psa_type: int,
    rows: tuple[int, int, int],
    columns: tuple[int, int, int],
) -> Tensor:
    """Return weights of all pixels. ``rows`` and ``columns`` are the map's size, the
    mask's, and that of the part of the mask before its pixel."""
    images = len(masks)
    masks = masks.view(images, rows[1], columns[1], rows[0], columns[0])
    for axis, (size, mask_size, half) in enumerate((rows, columns), 1):
        pixel = torch.arange(size, device=masks.device)
        place = pixel - pixel[:, None] + half  # of the column, in the row's mask
        inside = ((place >= 0) & (place < mask_size))[..., None, None, None]
        moved = masks.movedim((axis, axis + 2), (0, 1))
        moved = moved[place.clamp(0, mask_size - 1), pixel[:, None]] * inside
        # a mask's axis becomes one of the pixels that it weighs
        masks = moved.movedim((1, 0), (axis, axis + 2))
    masks = masks.permute(0, 3, 4, 1, 2) if psa_type else masks
    return masks.reshape(images, rows[0] * columns[0], rows[0], columns[0])


def psamask_backward(
    grad_output: Tensor,
    grad_input: Tensor,
    *,
    psa_type: int,
    num_: int,
    h_feature: int,
    w_feature: int,
    h_mask: int,
    w_mask: int,
    half_h_mask: int,
    half_w_mask: int,
) -> None:
    """Add the gradient of :func:`psamask_forward` to ``grad_input``."""
    rows, columns = (h_feature, h_mask, half_h_mask), (w_feature, w_mask, half_w_mask)

    def spread(masks: Tensor) -> Tensor:
        return _spread(masks, psa_type, rows, columns)

    add_gradients([grad_input], spread, [torch.zeros_like(grad_input)], grad_output)
