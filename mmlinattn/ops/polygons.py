"""Hulls of point sets, their overlaps with quadrilaterals, and their rectangles.

Everything is computed in float64. Letters: B, point sets of nine points; L,
quadrilaterals x1, y1, ..., x4, y4, in pixels.
"""

import torch
from torch import Tensor

from .geometry import hulls, pieces, shared_area_with_quadrilateral, signed_area

NUM_POINTS = 9  # of a set that stands for an object


def convex_iou(pointsets: Tensor, polygons: Tensor, ious: Tensor) -> None:
    """Fill the output with the overlaps of point sets' hulls and quadrilaterals.

    Args:
        pointsets (Tensor): Sets of nine points (B, 18).
        polygons (Tensor): Quadrilaterals (L, 8).
        ious (Tensor): The output, (B, L).
    """
    convex = hulls(pointsets.double().view(-1, NUM_POINTS, 2))
    quadrilaterals = polygons.double().view(-1, 4, 2)
    areas = signed_area(quadrilaterals).abs()
    for some in pieces(len(convex), 2 * len(quadrilaterals)):
        first = convex[some, None].expand(-1, len(quadrilaterals), -1, -1)
        second = quadrilaterals.expand(len(first), -1, -1, -1)
        shared = shared_area_with_quadrilateral(first, second)
        union = signed_area(convex[some])[:, None] + areas - shared
        ious[some] = (shared / union).to(ious.dtype)


def convex_giou(pointsets: Tensor, polygons: Tensor, output: Tensor) -> None:
    """Fill the output with generalized overlaps of hulls and quadrilaterals in pairs,
    and with their gradients by the points.

    Source: Rezatofighi et al., Generalized Intersection over Union, CVPR 2019, with the
    convex hull of both as the enclosing shape.

    Args:
        pointsets (Tensor): Sets of nine points (B, 18).
        polygons (Tensor): Quadrilaterals (B, 8).
        output (Tensor): (B, 19): 18 gradients, then the generalized overlap.
    """
    points = pointsets.detach().double().view(-1, NUM_POINTS, 2).requires_grad_()
    quadrilaterals = polygons.detach().double().view(-1, 4, 2)
    with torch.enable_grad():
        convex = hulls(points)
        shared = shared_area_with_quadrilateral(convex, quadrilaterals)
        both = hulls(torch.cat([convex, quadrilaterals], 1))
        union = signed_area(convex) + signed_area(quadrilaterals).abs() - shared
        enclosing = signed_area(both)
        giou = shared / union - (enclosing - union) / enclosing
        (gradient,) = torch.autograd.grad(giou.sum(), points)
    output[:, :-1] = gradient.flatten(1).to(output.dtype)
    output[:, -1] = giou.detach().to(output.dtype)


def min_area_polygons(pointsets: Tensor, polygons: Tensor) -> None:
    """Fill the output with the smallest rectangles around point sets.

    Source: Freeman and Shapira, Determining the minimum-area encasing rectangle for an
    arbitrary closed curve, Communications of the ACM 1975: one of its sides lies on an
    edge of the hull.

    Args:
        pointsets (Tensor): Sets of nine points (B, 18).
        polygons (Tensor): The output, corners (B, 8).
    """
    convex = hulls(pointsets.double().view(-1, NUM_POINTS, 2))
    edge = convex.roll(-1, 1) - convex
    angle = torch.atan2(edge[..., 1], edge[..., 0]).remainder(torch.pi / 2)
    across = torch.stack([angle.cos(), angle.sin()], -1)  # (B, edges, 2)
    down = torch.stack([-angle.sin(), angle.cos()], -1)
    x, y = across @ convex.mT, down @ convex.mT  # (B, edges, corners)
    low_x, high_x, low_y, high_y = x.amin(2), x.amax(2), y.amin(2), y.amax(2)
    areas = (high_x - low_x) * (high_y - low_y)
    areas = areas.where(edge.abs().amax(-1) > 0, torch.inf)  # edges of no length
    best = areas.argmin(1, keepdim=True)
    across, down = (
        axis.gather(1, best[..., None].expand(-1, -1, 2)) for axis in (across, down)
    )
    low_x, high_x, low_y, high_y = (
        side.gather(1, best)[..., None] for side in (low_x, high_x, low_y, high_y)
    )
    corners = (
        high_x * across + low_y * down,
        low_x * across + low_y * down,
        low_x * across + high_y * down,
        high_x * across + high_y * down,
    )
    polygons.copy_(torch.cat(corners, 1).flatten(1))
