"""Pooling of regions, which are rows of image index, x1, y1, x2, y2.

``aligned_height`` or ``pooled_height`` is ph, ``_width`` pw; ``spatial_scale``, the
size of the map over that of the image; ``sampling_ratio``, the points along a side of a
bin, or 0 for one in each pixel.
"""

import torch
from torch import Tensor
from torchvision.ops import roi_align

from .common import Corners, add_samples, sample, wide
from .points import average_points, bin_points, finite, image_starts


def roi_align_forward(
    input: Tensor,
    rois: Tensor,
    output: Tensor,
    argmax_y: Tensor,
    argmax_x: Tensor,
    *,
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    pool_mode: int,
    aligned: bool,
) -> None:
    """Fill the output with the average or maximum of points of each bin.

    Source: He et al., Mask R-CNN, ICCV 2017, section 3.

    Args:
        input (Tensor): Maps (N, C, H, W).
        rois (Tensor): Regions (R, 5).
        output (Tensor): (R, C, ph, pw).
        argmax_y (Tensor): Of that shape, for the row of a maximum's point.
        argmax_x (Tensor): The same, for its column.
        aligned_height (int): See above, as the next three.
        aligned_width (int): Bins in a row.
        spatial_scale (float): Scale of the maps.
        sampling_ratio (int): Points along a side of a bin.
        pool_mode (int): 0, maximum; 1, average.
        aligned (bool): Whether pixels have their centers at halves.
    """
    bins, ratio = (aligned_height, aligned_width), sampling_ratio
    features, rois = wide(input), finite(rois).to(wide(input).dtype)
    if pool_mode:
        output.copy_(roi_align(features, rois, bins, spatial_scale, ratio, aligned))
        return
    start, size = _extent(rois, spatial_scale, 0.5 if aligned else 0.0)
    size = size if aligned else size.clamp(min=1)
    output.fill_(-10000)  # mmcv's maximum of no points
    argmax_y.fill_(-1)
    argmax_x.fill_(-1)
    table = features.permute(0, 2, 3, 1).flatten(0, 2)
    for some, y, x in bin_points(start, size, bins, ratio):
        corners = Corners(y, x, input)
        values = sample(table, image_starts(rois[some], input), corners)
        best, index = values.flatten(3, 4).max(3)
        shape = corners.inside.shape
        best_y = y.expand(shape).flatten(3).gather(3, index)
        best_x = x.expand(shape).flatten(3).gather(3, index)
        output[some] = best.permute(0, 3, 1, 2).to(output.dtype)
        argmax_y[some] = best_y.permute(0, 3, 1, 2).to(argmax_y.dtype)
        argmax_x[some] = best_x.permute(0, 3, 1, 2).to(argmax_x.dtype)


def roi_align_backward(
    grad_output: Tensor,
    rois: Tensor,
    argmax_y: Tensor,
    argmax_x: Tensor,
    grad_input: Tensor,
    *,
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    pool_mode: int,
    aligned: bool,
) -> None:
    """Add the gradient of :func:`roi_align_forward` to the last tensor."""
    grad, rois = wide(grad_output), finite(rois)
    if pool_mode:
        # autograd would need the maps, which mmcv does not keep
        grad_input += torch.ops.torchvision._roi_align_backward(
            grad,
            rois.to(grad.dtype),
            spatial_scale,
            aligned_height,
            aligned_width,
            *grad_input.shape,
            sampling_ratio,
            aligned,
        )
        return
    grad = grad * (argmax_y != -1)
    corners = Corners(wide(argmax_y), wide(argmax_x), grad_input)
    flat = grad.new_zeros(grad_input.numel(), 1)
    add_samples(flat, _map_starts(rois, grad_input), corners, grad[..., None])
    grad_input += flat.view_as(grad_input)


def _extent(rois: Tensor, scale: float, shift: float) -> tuple[Tensor, Tensor]:
    """Return first corners and sizes of regions in pixels of the map, x and y, (R, 2)
    each."""
    start, end = rois[:, 1:3] * scale - shift, rois[:, 3:] * scale - shift
    return start, end - start


def _map_starts(rois: Tensor, maps: Tensor) -> Tensor:
    """Return where in the flattened maps those of the regions begin, (R, C, 1, 1)."""
    channel = torch.arange(maps.shape[1], device=maps.device)
    start = rois[:, 0].long()[:, None] * maps.shape[1] + channel
    return start[..., None, None] * maps[0, 0].numel()


def deform_roi_pool_forward(
    input: Tensor,
    rois: Tensor,
    offset: Tensor,
    output: Tensor,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    gamma: float,
) -> None:
    """Fill the output with the average of points of each bin, which its offset shifts.

    Source: Dai et al., Deformable Convolutional Networks, ICCV 2017, equation 5.

    Args:
        input (Tensor): Maps (N, C, H, W).
        rois (Tensor): Regions (R, 5).
        offset (Tensor): (R, 2, ph, pw), x and y over the region's size, or empty.
        output (Tensor): (R, C, ph, pw).
        pooled_height (int): See above, as the next three.
        pooled_width (int): Bins in a row.
        spatial_scale (float): Scale of the maps.
        sampling_ratio (int): Points along a side of a bin.
        gamma (float): Factor of the offsets.
    """
    rois, bins = finite(rois), (pooled_height, pooled_width)
    start, size = _extent(rois, spatial_scale, 0.5)
    start = _shifted(start, size * gamma, wide(offset))
    average_points(input, rois, output, bin_points(start, size, bins, sampling_ratio))


def _shifted(start: Tensor, unit: Tensor, offset: Tensor) -> Tensor:
    """Return first corners (R, 2), or with offsets those of each bin (R, ph, pw, 2);
    ``unit`` is an offset of 1 in pixels, (R, 2)."""
    if not offset.numel():
        return start
    shift = unit[:, None, None] * offset.permute(0, 2, 3, 1)
    return start[:, None, None] + shift


def deform_roi_pool_backward(
    grad_output: Tensor,
    input: Tensor,
    rois: Tensor,
    offset: Tensor,
    grad_input: Tensor,
    grad_offset: Tensor,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    gamma: float,
) -> None:
    """Add the gradients of :func:`deform_roi_pool_forward` by maps and offsets."""
    rois, bins = finite(rois), (pooled_height, pooled_width)
    start, size = _extent(rois, spatial_scale, 0.5)
    unit = size * gamma
    start = _shifted(start, unit, wide(offset))
    grad, table = wide(grad_output), wide(input).permute(0, 2, 3, 1).flatten(0, 2)
    by_pixel = torch.zeros_like(table)
    for some, y, x in bin_points(start, size, bins, sampling_ratio):
        corners, image = Corners(y, x, input), image_starts(rois[some], input)
        shape = corners.inside.shape
        change = grad[some].permute(0, 2, 3, 1) / (shape[3] * shape[4])
        change = change[:, :, :, None, None].expand(*shape, -1)
        add_samples(by_pixel, image, corners, change)
        if offset.numel():
            slopes = _slopes(table, image, corners, y, x) * change[..., None, :]
            shift = unit[some][:, None, None] * slopes.sum((3, 4, 6))
            grad_offset[some] += shift.permute(0, 3, 1, 2).to(grad_offset.dtype)
    by_pixel = by_pixel.view(len(input), *input.shape[2:], -1)
    grad_input += by_pixel.permute(0, 3, 1, 2)


def _slopes(
    table: Tensor, start: Tensor, corners: Corners, y: Tensor, x: Tensor
) -> Tensor:
    """Return the derivatives of points' values by x and y, S + (2, C), as in mmcv."""
    inside = corners.inside[..., None]
    pixels = [table[start + place] * inside for place in corners.places]
    top_left, top_right, bottom_left, bottom_right = pixels
    down, up = (y - corners.top)[..., None], (corners.bottom - y)[..., None]
    right, left = (x - corners.left)[..., None], (corners.right - x)[..., None]
    by_x = (bottom_right - bottom_left) * down + (top_right - top_left) * up
    by_y = (bottom_right - top_right) * right + (bottom_left - top_left) * left
    return torch.stack([by_x, by_y], -2)
