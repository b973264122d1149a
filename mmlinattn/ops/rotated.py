"""Overlaps and suppression of rotated boxes and quadrilaterals, and what assigns points
to them.

Boxes are as in :mod:`.geometry`. Letters: B, L, boxes; P, Q, points.
"""

from typing import Optional

import torch
from torch import Tensor

from .common import wide
from .geometry import PAIRS, Polygons, overlaps, pieces, quadrilaterals, rectangles


def box_iou_rotated(
    boxes1: Tensor, boxes2: Tensor, ious: Tensor, *, mode_flag: int, aligned: bool
) -> None:
    """Fill the output with the overlaps of rotated boxes.

    Args:
        boxes1 (Tensor): (B, 5).
        boxes2 (Tensor): (L, 5).
        ious (Tensor): The output, (B * L,), or (B,) if aligned.
        mode_flag (int): 0, over the union; 1, over the area of the first box.
        aligned (bool): Whether only the boxes of the same row are compared.
    """
    _fill(ious, rectangles(boxes1), rectangles(boxes2), mode_flag, aligned)


def box_iou_quadri(
    boxes1: Tensor, boxes2: Tensor, ious: Tensor, *, mode_flag: int, aligned: bool
) -> None:
    """Fill the output with the overlaps of quadrilaterals.

    mmcv's are right where both are rectangles; these are for all quadrilaterals.

    Args:
        boxes1 (Tensor): (B, 8).
        boxes2 (Tensor): (L, 8).
        ious (Tensor): The output, (B * L,), or (B,) if aligned.
        mode_flag (int): 0, over the union; 1, over the area of the first box.
        aligned (bool): Whether only the boxes of the same row are compared.
    """
    first, second = quadrilaterals(boxes1), quadrilaterals(boxes2)
    _fill(ious, first, second, mode_flag, aligned)


def _fill(
    ious: Tensor, first: Polygons, second: Polygons, mode_flag: int, aligned: bool
) -> None:
    """Write the overlaps of B and L polygons to ``ious``."""
    if aligned:
        ious.copy_(overlaps(first, second, mode_flag))
        return
    num = len(first.corners), len(second.corners)
    table = ious.view(num)
    for some in pieces(*num):
        values = overlaps(first[some, None], second[None], mode_flag)
        table[some] = values.to(ious.dtype)


def nms_rotated(
    dets: Tensor,
    scores: Tensor,
    order: Tensor,
    dets_sorted: Tensor,
    labels: Tensor,
    iou_threshold: float,
    multi_label: int,
) -> Tensor:
    """Return the indices of the rotated boxes that are kept, those of high scores
    first. A box goes if it overlaps one of a higher score by the threshold or more.

    Args:
        dets (Tensor): (B, 5), or with their labels (B, 6).
        scores (Tensor): (B,).
        order (Tensor): Indices from the highest score to the lowest, (B,).
        dets_sorted (Tensor): The boxes in that order.
        labels (Tensor): (B,), or empty.
        iou_threshold (float): See above.
        multi_label (int): Whether only boxes of the same label compete, as in mmcv on
            a GPU; on a CPU, it compares all.
    """
    classes = labels if multi_label else None
    return _suppress(rectangles(dets[:, :5]), scores, iou_threshold, classes)


def nms_quadri(
    dets: Tensor,
    scores: Tensor,
    order: Tensor,
    dets_sorted: Tensor,
    iou_threshold: float,
    multi_label: int,
) -> Tensor:
    """Return the same for quadrilaterals.

    Args:
        dets (Tensor): (B, 8), or with their labels (B, 9).
        scores (Tensor): (B,).
        order (Tensor): Indices from the highest score to the lowest, (B,).
        dets_sorted (Tensor): The boxes in that order.
        iou_threshold (float): See :func:`nms_rotated`.
        multi_label (int): See :func:`nms_rotated`.
    """
    classes = dets[:, 8] if multi_label else None
    return _suppress(quadrilaterals(dets[:, :8]), scores, iou_threshold, classes)


def _suppress(
    boxes: Polygons, scores: Tensor, iou_threshold: float, labels: Optional[Tensor]
) -> Tensor:
    """Return indices of boxes (B,) that overlap no better one by the threshold or
    more."""
    # among equal scores, the order is that of PyTorch's sort, as in mmcv
    rest = scores.sort(0, descending=True)[1]
    threshold = torch.tensor(iou_threshold, dtype=torch.float32)
    chosen = [rest[:0]]
    while len(rest):
        best = rest[: max(PAIRS // len(rest), 1)]
        rivals = overlaps(boxes[best, None], boxes[None, rest]).float() >= threshold
        if labels is not None:
            rivals &= labels[best, None] == labels[rest]
        left = torch.ones(len(rest), dtype=torch.bool)
        for index, beaten in enumerate(rivals.cpu()):
            if left[index]:
                beaten[: index + 1] = False
                left &= ~beaten
        left = left.to(rest.device)
        chosen.append(best[left[: len(best)]])
        rest = rest[len(best) :][left[len(best) :]]
    return torch.cat(chosen)


def points_in_polygons_forward(
    points: Tensor, polygons: Tensor, output: Tensor
) -> None:
    """Fill the output with 1 where a point is in a quadrilateral, else 0.

    Source: Shimrat, Algorithm 112: position of point relative to polygon,
    Communications of the ACM 1962. On the border, it depends on the edge, as in mmcv.

    Args:
        points (Tensor): (P, 2).
        polygons (Tensor): (L, 8).
        output (Tensor): (P, L).
    """
    x, y = (axis[:, None, None] for axis in wide(points).unbind(1))
    end = wide(polygons).view(-1, 4, 2)
    start = end.roll(1, 1)
    (start_x, start_y), (end_x, end_y) = start.unbind(2), end.unbind(2)
    crosses = (end_y < y) != (start_y < y)
    rise = (start_y - end_y).where(start_y != end_y, 1.0)
    border = end_x + (y - end_y) * (start_x - end_x) / rise
    corner = ((end_x == x) & (end_y == y)) | ((start_x == x) & (start_y == y))
    on_border = corner | (crosses & (border == x))
    # edges after one that the point lies on do not count
    counts = crosses & (border > x) & (on_border.cumsum(2) == 0)
    output.copy_(counts.sum(2) % 2)


def chamfer_distance_forward(
    xyz1: Tensor, xyz2: Tensor, dist1: Tensor, dist2: Tensor, idx1: Tensor, idx2: Tensor
) -> None:
    """Fill the outputs with squared distances to the nearest point of the other set,
    and with its index.

    Args:
        xyz1 (Tensor): Points (N, P, 2).
        xyz2 (Tensor): Points (N, Q, 2).
        dist1 (Tensor): (N, P).
        dist2 (Tensor): (N, Q).
        idx1 (Tensor): Of the second set, (N, P), int32.
        idx2 (Tensor): Of the first set, (N, Q), int32.
    """
    distances = (wide(xyz1)[:, :, None] - wide(xyz2)[:, None]).square().sum(-1)
    for axis, nearest, index in ((2, dist1, idx1), (1, dist2, idx2)):
        values, places = distances.min(axis)
        nearest.copy_(values)
        index.copy_(places)


def chamfer_distance_backward(
    xyz1: Tensor,
    xyz2: Tensor,
    idx1: Tensor,
    idx2: Tensor,
    graddist1: Tensor,
    graddist2: Tensor,
    gradxyz1: Tensor,
    gradxyz2: Tensor,
) -> None:
    """Add the gradients of :func:`chamfer_distance_forward` by the points to the last
    two tensors."""
    for points, others, index, grad, by_points, by_others in (
        (xyz1, xyz2, idx1, graddist1, gradxyz1, gradxyz2),
        (xyz2, xyz1, idx2, graddist2, gradxyz2, gradxyz1),
    ):
        places = index.long()[..., None].expand(-1, -1, 2)
        change = 2 * grad[..., None] * (points - others.gather(1, places))
        by_points += change
        by_others.scatter_add_(1, places, -change)


NUM_VERTICES = 9  # of a polygon that two rectangles share, the first one twice
FIRST_CROSSING = 8  # before it, vertices are corners of the rectangles
SAME = 1e-8  # distance of vertices that are one, in pixels


def diff_iou_rotated_sort_vertices_forward(
    vertices: Tensor, mask: Tensor, num_valid: Tensor
) -> Tensor:
    """Return the indices of vertices by their angle, the first one again after the
    last, then one that is not valid; (N, B, 9), int32.

    Of vertices in one place, the first one is taken, so that the area of what two
    equal rectangles share is theirs, as in mmcv; mmcv leaves other such cases open.

    Args:
        vertices (Tensor): About their mean, (N, B, 24, 2).
        mask (Tensor): Which are valid, (N, B, 24).
        num_valid (Tensor): How many are, (N, B).
    """
    angles = torch.atan2(vertices[..., 1], vertices[..., 0]) % (2 * torch.pi)
    repeated = _repeated(vertices, mask)
    angles = angles.where(mask & ~repeated, torch.inf)
    order = angles.argsort(dim=-1, stable=True)[..., :NUM_VERTICES]
    num = (mask & ~repeated).sum(-1, keepdim=True)
    padding = FIRST_CROSSING + mask[..., FIRST_CROSSING:].int().argmin(-1, keepdim=True)
    position = torch.arange(NUM_VERTICES, device=order.device)
    closed = order.where(position != num, order[..., :1])
    return closed.where((position <= num) & (num >= 3), padding).int()


def _repeated(vertices: Tensor, mask: Tensor) -> Tensor:
    """Return which valid vertices are in the place of an earlier valid one, (N, B,
    24)."""
    apart = vertices[..., :, None, :] - vertices[..., None, :, :]
    same = (apart.abs() < SAME).all(-1)
    return (same & mask[..., None, :]).tril(-1).any(-1)
