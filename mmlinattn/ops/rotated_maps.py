"""Maps under rotated boxes, and convolutions' weights that turn.

Regions are rows of image index, x and y of the center, width, height and angle in
radians, which turns counterclockwise in an image unless ``clockwise``.
``pooled_height`` is ph, ``pooled_width`` pw; ``spatial_scale``, the size of the map
over that of the image. Letters: O, orientations of a channel; K, rotations.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from .common import Corners, add_samples, sample, wide
from .geometry import corners_of
from .points import average_points, bin_points, finite, image_starts


def _rotated_points(
    center: Tensor, size: Tensor, angle: Tensor, bins: tuple[int, int], ratio: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield indices of regions with equally many points in a bin, and the points' rows
    and columns, (R, ph, pw, points, points) each.

    Args:
        center (Tensor): (R, 2), x and y in pixels of the map.
        size (Tensor): (R, 2), width and height.
        angle (Tensor): (R,), counterclockwise.
        bins (tuple): ph and pw.
        ratio (int): Points along a side of a bin, or 0 for one in each pixel.
    """
    for some, y, x in bin_points(-size / 2, size, bins, ratio):
        turn = angle[some].view(-1, 1, 1, 1, 1)
        middle_x, middle_y = center[some].view(-1, 2, 1, 1, 1, 1).unbind(1)
        row = y * turn.cos() - x * turn.sin() + middle_y
        column = y * turn.sin() + x * turn.cos() + middle_x
        yield some, row, column


def _add_gradient(
    grad_output: Tensor, rois: Tensor, grad_input: Tensor, points: Iterator
) -> None:
    """Add the gradient of :func:`average_points` by the maps to ``grad_input``."""
    grad = wide(grad_output)
    num, channels, height, width = grad_input.shape
    by_pixel = grad.new_zeros(num * height * width, channels)
    for some, row, column in points:
        corners, shape = Corners(row, column, grad_input), row.shape
        change = grad[some].permute(0, 2, 3, 1) / (shape[3] * shape[4])
        change = change[:, :, :, None, None].expand(*shape, -1)
        add_samples(by_pixel, image_starts(rois[some], grad_input), corners, change)
    grad_input += by_pixel.view(num, height, width, -1).permute(0, 3, 1, 2)


def _align_points(
    rois: Tensor,
    bins: tuple[int, int],
    scale: float,
    ratio: int,
    aligned: bool,
    clockwise: bool,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Return the points of :func:`_rotated_points` for regions (R, 6) of an image."""
    center = rois[:, 1:3] * scale - (0.5 if aligned else 0.0)
    size = rois[:, 3:5] * scale
    size = size if aligned else size.clamp(min=1)
    angle = -rois[:, 5] if clockwise else rois[:, 5]
    return _rotated_points(center, size, angle, bins, ratio)


def roi_align_rotated_forward(
    input: Tensor,
    rois: Tensor,
    output: Tensor,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
    clockwise: bool,
) -> None:
    """Fill the output with the average of points of each bin of rotated regions.

    Source: Ma et al., Arbitrary-oriented scene text detection via rotation proposals,
    IEEE Transactions on Multimedia 2018, with the points of RoIAlign.

    Args:
        input (Tensor): Maps (N, C, H, W).
        rois (Tensor): Regions (R, 6).
        output (Tensor): (R, C, ph, pw).
        pooled_height (int): See above, as the next two.
        pooled_width (int): Bins in a row.
        spatial_scale (float): Scale of the maps.
        sampling_ratio (int): Points along a side of a bin, or 0 for one in each pixel.
        aligned (bool): Whether pixels have their centers at halves.
        clockwise (bool): Whether positive angles turn clockwise.
    """
    rois, bins = finite(rois), (pooled_height, pooled_width)
    options = (bins, spatial_scale, sampling_ratio, aligned, clockwise)
    average_points(input, rois, output, _align_points(rois, *options))


def roi_align_rotated_backward(
    grad_output: Tensor,
    rois: Tensor,
    grad_input: Tensor,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
    clockwise: bool,
) -> None:
    """Add the gradient of :func:`roi_align_rotated_forward` to the last tensor."""
    rois, bins = finite(rois), (pooled_height, pooled_width)
    options = (bins, spatial_scale, sampling_ratio, aligned, clockwise)
    _add_gradient(grad_output, rois, grad_input, _align_points(rois, *options))


def _orientation_shares(rois: Tensor, num: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each region, the orientation that its angle is next to from below, (R,), and
    the shares of that one and of the one before it, (R, 1, 1, 1, 1)."""
    turns = rois[:, 5] * num / (2 * torch.pi)
    first = turns.floor()
    share = (turns - first).view(-1, 1, 1, 1, 1)
    return first.long(), 1 - share, share


def _shift_orientations(pooled: Tensor, first: Tensor, sign: int) -> Tensor:
    """Move the orientations (R, C, O, ph, pw) of each region by ``first``."""
    num = pooled.shape[2]
    orientation = torch.arange(num, device=pooled.device)
    places = (orientation - sign * first[:, None]) % num
    return pooled.gather(2, places[:, None, :, None, None].expand_as(pooled))


def riroi_align_rotated_forward(
    features: Tensor,
    rois: Tensor,
    output: Tensor,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    num_samples: int,
    num_orientations: int,
    clockwise: bool,
) -> None:
    """Fill the output with the average of points of each bin of rotated regions, whose
    orientations turn with the region.

    Source: Han et al., ReDet, CVPR 2021, section 3.3.

    Args:
        features (Tensor): Maps (N, C * O, H, W).
        rois (Tensor): Regions (R, 6).
        output (Tensor): (R, C * O, ph, pw).
        pooled_height (int): See above, as the next two.
        pooled_width (int): Bins in a row.
        spatial_scale (float): Scale of the maps.
        num_samples (int): Points along a side of a bin, or 0 for one in each pixel.
        num_orientations (int): O.
        clockwise (bool): Whether positive angles turn clockwise.
    """
    rois, bins = finite(rois), (pooled_height, pooled_width)
    options = (bins, spatial_scale, num_samples, False, clockwise)
    pooled = torch.zeros_like(output, dtype=wide(output).dtype)
    average_points(features, rois, pooled, _align_points(rois, *options))
    pooled = pooled.unflatten(1, (-1, num_orientations))
    first, share, next_share = _orientation_shares(rois, num_orientations)
    turned = share * _shift_orientations(pooled, first, 1)
    turned = turned + next_share * _shift_orientations(pooled, first - 1, 1)
    output.copy_(turned.flatten(1, 2))


def riroi_align_rotated_backward(
    top_grad: Tensor,
    rois: Tensor,
    bottom_grad: Tensor,
    *,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    num_samples: int,
    num_orientations: int,
    clockwise: bool,
) -> None:
    """Add the gradient of :func:`riroi_align_rotated_forward` to the last tensor."""
    rois, bins = finite(rois), (pooled_height, pooled_width)
    options = (bins, spatial_scale, num_samples, False, clockwise)
    grad = wide(top_grad).unflatten(1, (-1, num_orientations))
    first, share, next_share = _orientation_shares(rois, num_orientations)
    turned = _shift_orientations(share * grad, first, -1)
    turned = turned + _shift_orientations(next_share * grad, first - 1, -1)
    points = _align_points(rois, *options)
    _add_gradient(turned.flatten(1, 2), rois, bottom_grad, points)


def _box_points(
    boxes: Tensor, scale: float, points: int, maps: Tensor
) -> tuple[Corners, Tensor]:
    """Return pixels around the points of each place's box, (N, H, W, points), and where
    in a table of pixels its image begins, (N, 1, 1, 1).

    A box is y, x, width, height and angle; points are its center, or with its corners.
    """
    num, _, height, width = maps.shape
    boxes = wide(boxes).reshape(num, height, width, 5)  # MMRotate's are (N·H·W, 5)
    boxes = boxes[..., [1, 0, 2, 3, 4]] * boxes.new_tensor([scale] * 4 + [1])
    places = boxes[..., None, :2]
    if points > 1:
        places = torch.cat([places, corners_of(boxes)], -2)
    x, y = places.unbind(-1)
    start = torch.arange(len(boxes), device=boxes.device) * maps[0, 0].numel()
    return Corners(y, x, maps), start.view(-1, 1, 1, 1)


def rotated_feature_align_forward(
    features: Tensor,
    best_bboxes: Tensor,
    output: Tensor,
    *,
    spatial_scale: float,
    points: int,
) -> None:
    """Fill the output with each place's features and those at points of its box.

    Source: Yang et al., R3Det, AAAI 2021, algorithm 1.

    Args:
        features (Tensor): Maps (N, C, H, W).
        best_bboxes (Tensor): y, x, width, height and angle (N, H, W, 5).
        output (Tensor): (N, C, H, W).
        spatial_scale (float): Size of the map over that of the image.
        points (int): 1, a box's center; 5, and its corners.
    """
    table = wide(features).permute(0, 2, 3, 1).flatten(0, 2)
    corners, start = _box_points(best_bboxes, spatial_scale, points, features)
    values = sample(table, start, corners).sum(3).permute(0, 3, 1, 2)
    output.copy_(wide(features) + values)


def rotated_feature_align_backward(
    top_grad: Tensor,
    best_bboxes: Tensor,
    bottom_grad: Tensor,
    *,
    spatial_scale: float,
    points: int,
) -> None:
    """Add the gradient of :func:`rotated_feature_align_forward` by the maps."""
    grad = wide(top_grad).permute(0, 2, 3, 1)
    corners, start = _box_points(best_bboxes, spatial_scale, points, top_grad)
    by_pixel = grad.flatten(0, 2).clone()
    change = grad[..., None, :].expand(*corners.inside.shape, -1)
    add_samples(by_pixel, start, corners, change)
    bottom_grad += by_pixel.view_as(grad).permute(0, 3, 1, 2)


def active_rotated_filter_forward(
    input: Tensor, indices: Tensor, output: Tensor
) -> None:
    """Fill the output with the weights of a convolution, turned.

    Source: Zhou et al., Oriented Response Networks, CVPR 2017, section 3.1.

    Args:
        input (Tensor): Weights (Co, Ci, O, kh, kw).
        indices (Tensor): Where each of the O * kh * kw weights goes in each of K
            rotations, from 1, (O, kh, kw, K).
        output (Tensor): (Co * K, Ci * O, kh, kw).
    """
    weights, places = input.flatten(2), indices.flatten(0, 2).long() - 1
    turned = output.view(len(weights), -1, *weights.shape[1:])
    for rotation, place in enumerate(places.unbind(1)):
        turned[:, rotation][..., place] = weights


def active_rotated_filter_backward(
    grad_out: Tensor, indices: Tensor, grad_in: Tensor
) -> None:
    """Add the gradient of :func:`active_rotated_filter_forward` to the last tensor."""
    places = indices.flatten(0, 2).long() - 1
    grads = grad_out.reshape(len(grad_in), -1, *grad_in.flatten(2).shape[1:])
    for rotation, place in enumerate(places.unbind(1)):
        grad_in += grads[:, rotation][..., place].view_as(grad_in)
