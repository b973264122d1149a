"""Boxes: suppression of those that overlap.

Thresholds are rounded to float32, as mmcv's, so that equality means the same.
``offset`` is 1 if a box includes its last pixel, else 0.
"""

from typing import Any

import numpy as np
import torch
import torchvision
from torch import Tensor

from .common import wide

LINEAR, GAUSSIAN = 1, 2  # methods of soft suppression; 0 drops a box


def _overlaps(first: Any, second: Any, offset: int) -> Any:
    """Return intersections over unions of boxes, tensors or arrays (..., 4), in
    pairs."""
    lib = torch if isinstance(first, Tensor) else np
    left = lib.maximum(first[..., 0], second[..., 0])
    top = lib.maximum(first[..., 1], second[..., 1])
    right = lib.minimum(first[..., 2], second[..., 2])
    bottom = lib.minimum(first[..., 3], second[..., 3])
    common = (right - left + offset).clip(min=0) * (bottom - top + offset).clip(min=0)
    return common / (_areas(first, offset) + _areas(second, offset) - common)


def _areas(boxes: Any, offset: int) -> Any:
    widths = boxes[..., 2] - boxes[..., 0] + offset
    heights = boxes[..., 3] - boxes[..., 1] + offset
    return widths * heights


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float, offset: int) -> Tensor:
    """Return the indices of the boxes (N, 4) that are kept, those of high scores first.

    A box goes if it overlaps one of a higher score (N,) by more than the threshold.
    """
    # among equal scores, the order is that of PyTorch's sort, as in mmcv
    order = scores.argsort(descending=True)
    boxes = wide(boxes)[order]
    boxes = torch.cat([boxes[:, :2], boxes[:, 2:] + offset], 1) if offset else boxes
    ranks = torch.arange(len(boxes), 0, -1, device=boxes.device, dtype=boxes.dtype)
    threshold = torch.tensor(iou_threshold, dtype=torch.float32).item()
    return order[torchvision.ops.nms(boxes, ranks, threshold)]


def nms_match(dets: Tensor, iou_threshold: float) -> list[list[int]]:
    """Return, for each box that is kept, its index and those that go because of it.

    ``dets`` (N, 5) are boxes and scores. A box goes if it overlaps one of a higher
    score by the threshold or more.
    """
    dets, matched = wide(dets), []
    order = dets[:, 4].argsort(descending=True)
    dets, left = dets[order], torch.ones_like(order, dtype=torch.bool)
    for start in range(0, len(dets), 256):
        some = dets[start : start + 256, None]
        for index, near in enumerate(_overlaps(some, dets, 0) >= iou_threshold, start):
            if left[index]:
                left[index] = False
                match = near & left
                left &= ~match
                matched.append([int(order[index]), *order[match].tolist()])
    return matched


@np.errstate(invalid='ignore')  # boxes without area
def softnms(
    boxes: Tensor,
    scores: Tensor,
    dets: Tensor,
    *,
    iou_threshold: float,
    sigma: float,
    min_score: float,
    method: int,
    offset: int,
) -> Tensor:
    """Lower the scores of boxes that overlap better ones, and return the indices of
    those that are left, in the output's order.

    Source: Bodla et al., Soft-NMS, ICCV 2017, equations 2 and 3.

    Args:
        boxes (Tensor): (N, 4).
        scores (Tensor): (N,).
        dets (Tensor): The output (N, 5), whose first rows get boxes and new scores.
        iou_threshold (float): The overlap from which on a score falls, but by a
            Gaussian.
        sigma (float): Width of the Gaussian.
        min_score (float): The score below which a box goes.
        method (int): 0, a box goes; 1, its score falls linearly; 2, by a Gaussian.
        offset (int): See above.
    """
    rows = torch.cat([wide(boxes), wide(scores)[:, None]], 1).cpu().numpy()
    indices, done = np.arange(len(rows)), 0
    while done < len(rows):
        best = done + rows[done:, 4].argmax()
        for table in (rows, indices):
            table[[done, best]] = table[[best, done]]
        done += 1
        rest = rows[done:]
        overlaps = _overlaps(rest, rows[done - 1], offset)
        if method == GAUSSIAN:
            rest[:, 4] *= np.exp(-overlaps * overlaps / np.float32(sigma))
        else:
            lower = 1 - overlaps if method == LINEAR else 0
            falls = overlaps >= np.float32(iou_threshold)
            rest[:, 4] *= np.where(falls, lower, np.float32(1))
        gone = rest[:, 4] < np.float32(min_score)
        if gone.any():
            left = len(rest) - gone.sum()
            # mmcv fills the gaps with the last ones, which decides among equal scores
            gaps = done + gone[:left].nonzero()[0]
            moved = done + left + (~gone[left:]).nonzero()[0][::-1]
            for table in (rows, indices):
                table[gaps] = table[moved]
            rows, indices = rows[: done + left], indices[: done + left]
    dets[: len(rows)] = torch.from_numpy(rows)
    return torch.from_numpy(indices).to(boxes.device)
