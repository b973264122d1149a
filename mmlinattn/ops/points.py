"""Points of regions' bins, upright or rotated, and the average over them.

Letters: N, images; R, regions; C, channels; ph and pw, bins of a region.
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from .common import Corners, sample, wide

REGIONS = 256  # at a time, which bounds the memory of their points


def finite(rois: Tensor) -> Tensor:
    """Regions; one with NaN, with which torchvision crashes, is of no size."""
    return wide(rois).where(rois.isfinite().all(1, keepdim=True), 0.0)


def image_starts(rois: Tensor, maps: Tensor) -> Tensor:
    """Return where in a table of pixels the regions' images begin, (R, 1, 1, 1, 1)."""
    return rois[:, 0].long().view(-1, 1, 1, 1, 1) * maps[0, 0].numel()


def bin_points(
    start: Tensor, size: Tensor, bins: tuple[int, int], ratio: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield indices of regions with equally many points in a bin, and the points' rows
    (R, ph, pw, points, 1) and columns (R, ph, pw, 1, points).

    ``start`` is (R, 2), or (R, ph, pw, 2) where each bin has its own.
    """
    start = start if start.ndim == 4 else start[:, None, None].expand(-1, *bins, -1)
    step = size / size.new_tensor([bins[1], bins[0]])
    counts = step.ceil() if ratio <= 0 else torch.full_like(step, ratio)
    groups = [
        (count, some)
        for count in counts[(counts > 0).all(1)].unique(dim=0)
        for some in (counts == count).all(1).nonzero()[:, 0].split(REGIONS)
    ]
    for count, some in groups:
        places = []
        for axis, unit in enumerate(step[some, :, None, None].unbind(1)):
            bin = torch.arange(bins[1 - axis], device=size.device)
            edge = start[some][..., axis] + (bin[:, None] if axis else bin) * unit
            point = torch.arange(int(count[axis]), device=size.device) + 0.5
            places.append(edge[..., None] + point * unit[..., None] / count[axis])
        x, y = places
        yield some, y[..., None], x[..., None, :]


def average_points(
    maps: Tensor,
    rois: Tensor,
    output: Tensor,
    points: Iterable[tuple[Tensor, Tensor, Tensor]],
) -> None:
    """Fill the output with the average of points of each bin; 0 where there are none.

    Args:
        maps (Tensor): (N, C, H, W).
        rois (Tensor): Regions, whose first column is the index of an image.
        output (Tensor): (R, C, ph, pw).
        points (iterable): Indices of regions, rows and columns, as of
            :func:`bin_points`.
    """
    table = wide(maps).permute(0, 2, 3, 1).flatten(0, 2)
    output.zero_()
    for some, y, x in points:
        values = sample(table, image_starts(rois[some], maps), Corners(y, x, maps))
        output[some] = values.mean((3, 4)).permute(0, 3, 1, 2).to(output.dtype)
