"""Pooling of regions and borders. Regions are rows of image index, x1, y1, x2, y2.

Options: ``aligned_height`` or ``pooled_height``, ph, and ``_width``, pw;
``spatial_scale``, the size of the map over that of the image; ``sampling_ratio``, the
points along a side of a bin, or 0 for one in each pixel.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torchvision.ops import roi_align

from .common import Corners, add_samples, sample, wide


def roi_align_forward(
    *tensors: Tensor, pool_mode: int, aligned: bool, **options: float
) -> None:
    """Fill the output with the average or maximum of points of each bin.

    Source: He et al., Mask R-CNN, ICCV 2017, section 3.

    Args:
        tensors: Maps (N, C, H, W); regions (R, 5); the output (R, C, ph, pw); for a
            maximum, outputs of that shape for its point's row and column.
        pool_mode (int): 0, maximum; 1, average.
        aligned (bool): Whether pixels have their centers at halves.
    """
    input, rois, output, *places = tensors
    bins, scale = _bins('aligned', options), options['spatial_scale']
    ratio = int(options['sampling_ratio'])
    features, rois = wide(input), _finite(rois).to(wide(input).dtype)
    if pool_mode:
        output.copy_(roi_align(features, rois, bins, scale, ratio, aligned))
        return
    start, size = _extent(rois, scale, 0.5 if aligned else 0.0)
    size = size if aligned else size.clamp(min=1)
    output.fill_(-10000)  # mmcv's maximum of no points
    for tensor in places:
        tensor.fill_(-1)
    table = features.permute(0, 2, 3, 1).flatten(0, 2)
    for some, y, x in _points(start, size, bins, ratio):
        corners = Corners(y, x, input)
        values = sample(table, _image_starts(rois[some], input), corners)
        best, index = values.flatten(3, 4).max(3)
        shape = corners.inside.shape
        y, x = (place.expand(shape).flatten(3).gather(3, index) for place in (y, x))
        for tensor, result in zip((output, *places), (best, y, x)):
            tensor[some] = result.permute(0, 3, 1, 2).to(tensor.dtype)


def roi_align_backward(
    *tensors: Tensor, pool_mode: int, aligned: bool, **options: float
) -> None:
    """Add the gradient of :func:`roi_align_forward` to the last tensor."""
    grad_output, rois, y, x, grad_input = tensors
    grad, rois = wide(grad_output), _finite(rois)
    if pool_mode:
        # autograd would need the maps, which mmcv does not keep
        bins, scale = _bins('aligned', options), options['spatial_scale']
        ratio = int(options['sampling_ratio'])
        grad_input += torch.ops.torchvision._roi_align_backward(
            grad, rois.to(grad.dtype), scale, *bins, *grad_input.shape, ratio, aligned
        )
    else:
        grad, corners = grad * (y != -1), Corners(wide(y), wide(x), grad_input)
        flat = grad.new_zeros(grad_input.numel(), 1)
        add_samples(flat, _map_starts(rois, grad_input), corners, grad[..., None])
        grad_input += flat.view_as(grad_input)


def _finite(rois: Tensor) -> Tensor:
    """Regions; one with NaN, with which torchvision crashes, is of no size."""
    return wide(rois).where(rois.isfinite().all(1, keepdim=True), 0.0)


def _bins(kind: str, options: dict[str, float]) -> tuple[int, int]:
    return int(options[f'{kind}_height']), int(options[f'{kind}_width'])


def _extent(rois: Tensor, scale: float, shift: float) -> tuple[Tensor, Tensor]:
    """First corners and sizes of regions in pixels of the map, x and y, (R, 2) each."""
    start, end = rois[:, 1:3] * scale - shift, rois[:, 3:] * scale - shift
    return start, end - start


def _image_starts(rois: Tensor, maps: Tensor) -> Tensor:
    """Where in a table of pixels the regions' images begin, (R, 1, 1, 1, 1)."""
    return rois[:, 0].long().view(-1, 1, 1, 1, 1) * maps[0, 0].numel()


def _map_starts(rois: Tensor, maps: Tensor) -> Tensor:
    """Where in the flattened maps those of the regions begin, (R, C, 1, 1)."""
    channel = torch.arange(maps.shape[1], device=maps.device)
    start = rois[:, 0].long()[:, None] * maps.shape[1] + channel
    return start[..., None, None] * maps[0, 0].numel()


def _points(
    start: Tensor, size: Tensor, bins: tuple[int, int], ratio: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yields indices of regions with equally many points in a bin, and the points' rows
    (R, ph, pw, points, 1) and columns (R, ph, pw, 1, points).

    ``start`` is (R, 2), or (R, ph, pw, 2) where each bin has its own.
    """
    start = start if start.ndim == 4 else start[:, None, None].expand(-1, *bins, -1)
    step = size / size.new_tensor([bins[1], bins[0]])
    counts = step.ceil() if ratio <= 0 else torch.full_like(step, ratio)
    for count in counts[(counts > 0).all(1)].unique(dim=0):
        some = (counts == count).all(1).nonzero()[:, 0]
        places = []
        for axis, unit in enumerate(step[some, :, None, None].unbind(1)):
            bin = torch.arange(bins[1 - axis], device=size.device)
            edge = start[some][..., axis] + (bin[:, None] if axis else bin) * unit
            point = torch.arange(int(count[axis]), device=size.device) + 0.5
            places.append(edge[..., None] + point * unit[..., None] / count[axis])
        x, y = places
        yield some, y[..., None], x[..., None, :]


def roi_pool_forward(*tensors: Tensor, **options: float) -> None:
    """Fill the output with the largest pixel of each bin, 0 where there is none.

    torchvision rounds a region to pixels before it is cut into bins, mmcv does not.
    Source: Girshick, Fast R-CNN, ICCV 2015, section 2.1.

    Args:
        tensors: Maps (N, C, H, W); regions (R, 5); the output (R, C, ph, pw); an int
            output of that shape, the pixels' places in the flattened map, or -1.
    """
    input, rois, output, argmax = tensors
    scale, rois = options['spatial_scale'], _finite(rois)
    start = rois[:, 1:3] * scale
    size = (rois[:, 3:] + 1) * scale - start
    ends = []
    for axis, bins in zip((1, 0), _bins('pooled', options)):
        edge = torch.arange(bins + 1, device=rois.device) * size[:, axis, None] / bins
        edge = edge + start[:, axis, None]
        low_and_high = torch.stack([edge[:, :-1].floor(), edge[:, 1:].ceil()], -1)
        ends.append(low_and_high.clamp(0, input.shape[3 - axis]).long().tolist())
    output.zero_()
    argmax.fill_(-1)
    for region in (size > 0).all(1).nonzero()[:, 0].tolist():
        maps = input[int(rois[region, 0])]
        for row, (top, bottom) in enumerate(ends[0][region]):
            for column, (left, right) in enumerate(ends[1][region]):
                pixels = maps[:, top:bottom, left:right].flatten(1)
                if pixels.shape[1]:
                    output[region, :, row, column], index = pixels.max(1)
                    y, x = top + index // (right - left), left + index % (right - left)
                    argmax[region, :, row, column] = y * input.shape[3] + x


def roi_pool_backward(*tensors: Tensor, **options: float) -> None:
    """Add the gradient of :func:`roi_pool_forward` to the last tensor."""
    grad_output, rois, argmax, grad_input = tensors
    rois = _finite(rois)
    place = _map_starts(rois, grad_input) + argmax.clamp(min=0)
    change = wide(grad_output) * (argmax >= 0)
    flat = change.new_zeros(grad_input.numel())
    flat.index_add_(0, place.flatten(), change.flatten())
    grad_input += flat.view_as(grad_input)


def deform_roi_pool_forward(*tensors: Tensor, **options: float) -> None:
    """Fill the output with the average of points of each bin, which its offset shifts.

    Source: Dai et al., Deformable Convolutional Networks, ICCV 2017, equation 5.

    Args:
        tensors: Maps (N, C, H, W); regions (R, 5); offsets (R, 2, ph, pw), x and y over
            the region's size, or empty; the output (R, C, ph, pw).
        options: See above; and ``gamma``, the factor of the offsets.
    """
    input, rois, offset, output = tensors
    table = wide(input).permute(0, 2, 3, 1).flatten(0, 2)
    output.zero_()
    for some, y, x, _ in _shifted_points(_finite(rois), wide(offset), options):
        values = sample(table, _image_starts(rois[some], input), Corners(y, x, input))
        output[some] = values.mean((3, 4)).permute(0, 3, 1, 2).to(output.dtype)


def _shifted_points(
    rois: Tensor, offset: Tensor, options: dict[str, float]
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Yields what :func:`_points` does, and an offset of 1 in pixels, (R, 2)."""
    start, size = _extent(rois, options['spatial_scale'], 0.5)
    unit, bins = size * options['gamma'], _bins('pooled', options)
    if offset.numel():
        shift = unit[:, None, None] * offset.permute(0, 2, 3, 1)
        start = start[:, None, None] + shift
    for some, y, x in _points(start, size, bins, int(options['sampling_ratio'])):
        yield some, y, x, unit[some]


def deform_roi_pool_backward(*tensors: Tensor, **options: float) -> None:
    """Add the gradients of :func:`deform_roi_pool_forward` by maps and offsets."""
    grad_output, input, rois, offset, grad_input, grad_offset = tensors
    grad, table = wide(grad_output), wide(input).permute(0, 2, 3, 1).flatten(0, 2)
    by_pixel = torch.zeros_like(table)
    for some, y, x, unit in _shifted_points(_finite(rois), wide(offset), options):
        corners, image = Corners(y, x, input), _image_starts(rois[some], input)
        shape = corners.inside.shape
        change = grad[some].permute(0, 2, 3, 1) / (shape[3] * shape[4])
        change = change[:, :, :, None, None].expand(*shape, -1)
        add_samples(by_pixel, image, corners, change)
        if offset.numel():
            slopes = _slopes(table, image, corners, y, x) * change[..., None, :]
            shift = unit[:, None, None] * slopes.sum((3, 4, 6))
            grad_offset[some] += shift.permute(0, 3, 1, 2).to(grad_offset.dtype)
    by_pixel = by_pixel.view(len(input), *input.shape[2:], -1)
    grad_input += by_pixel.permute(0, 3, 1, 2)


def _slopes(
    table: Tensor, start: Tensor, corners: Corners, y: Tensor, x: Tensor
) -> Tensor:
    """The derivatives of points' values by x and y, S + (2, C), as in mmcv."""
    inside = corners.inside[..., None]
    pixels = [table[start + place] * inside for place in corners.places]
    top_left, top_right, bottom_left, bottom_right = pixels
    down, up = (y - corners.top)[..., None], (corners.bottom - y)[..., None]
    right, left = (x - corners.left)[..., None], (corners.right - x)[..., None]
    by_x = (bottom_right - bottom_left) * down + (top_right - top_left) * up
    by_y = (bottom_right - top_right) * right + (bottom_left - top_left) * left
    return torch.stack([by_x, by_y], -2)


def border_align_forward(*tensors: Tensor, pool_size: int) -> None:
    """Fill the output with the maximum of points along each border of boxes.

    Source: Qiu et al., BorderDet, ECCV 2020, equation 3.

    Args:
        tensors: Maps (N, 4·C, H, W) for top, left, bottom and right; boxes (N, K, 4)
            in pixels of the map; the output (N, C, K, 4); an int output, its point.
        pool_size (int): Steps from one end of a border to the other.
    """
    input, boxes, output, argmax = tensors
    image = torch.arange(len(input), device=input.device)[:, None] * input[0, 0].numel()
    for border, maps in enumerate(wide(input).chunk(4, 1)):
        table, values = maps.permute(0, 2, 3, 1).flatten(0, 2), []
        point, step = _border(wide(boxes), border, pool_size)
        for _ in range(pool_size + 1):
            corners = Corners(point[..., 1], point[..., 0], maps)
            values.append(sample(table, image, corners))
            point = point + step
        best, index = torch.stack(values).max(0)
        output[..., border] = best.transpose(1, 2).to(output.dtype)
        argmax[..., border] = index.transpose(1, 2).to(argmax.dtype)


def border_align_backward(*tensors: Tensor, pool_size: int) -> None:
    """Add the gradient of :func:`border_align_forward` to the last tensor."""
    grad_output, boxes, argmax, grad_input = tensors
    grad, (images, channels) = wide(grad_output), grad_output.shape[:2]
    start = torch.arange(images * channels, device=boxes.device)
    start = start.view(images, channels, 1) * grad_input[0, 0].numel()
    for border, maps in enumerate(grad_input.chunk(4, 1)):
        point, step = _border(wide(boxes)[:, None], border, pool_size)
        point = point + step * argmax[..., border, None]
        flat = grad.new_zeros(maps.numel(), 1)
        corners = Corners(point[..., 1], point[..., 0], maps)
        add_samples(flat, start, corners, grad[..., border, None])
        maps += flat.view(maps.shape)


def _border(boxes: Tensor, border: int, pool_size: int) -> tuple[Tensor, Tensor]:
    """A border's first point and the step to the next, as x and y."""
    start, end = boxes[..., :2], boxes[..., 2:]
    along = torch.tensor([border % 2 == 0, border % 2 == 1], device=boxes.device)
    step = (end - start) / pool_size * along
    return (start, step) if border < 2 else (end, -step)
