"""Areas that polygons share, overlaps of boxes, convex hulls.

Polygons are corners (..., K, 2), x and y in pixels, in the order of their border.
Everything is computed in float64. Rotated boxes are x and y of the center, width,
height, and an angle in radians, by which the box turns clockwise in an image;
quadrilaterals are x1, y1, ..., x4, y4. Letters: K, L, corners; B, boxes or polygons; P,
points.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

# pairs of polygons at a time: about 200 MB
PAIRS = 2**17
SMALLEST_AREA = 1e-14  # in square pixels; a smaller box overlaps nothing, as in mmcv
FOREGROUND = 1  # mode of overlaps: over the first box's area instead of the union


def cross(first: Tensor, second: Tensor) -> Tensor:
    """Return the z component of the cross product of vectors (..., 2)."""
    return first[..., 0] * second[..., 1] - first[..., 1] * second[..., 0]


def signed_area(polygon: Tensor) -> Tensor:
    """Return the shoelace formula: areas (...), positive where x turns to y."""
    return cross(polygon, polygon.roll(-1, -2)).sum(-1) / 2


def inside_share(polygon: Tensor, other: Tensor, margin: Tensor) -> Tensor:
    """Return the share of each edge of a polygon that is inside a convex one, (..., K).

    Source: Cyrus and Beck, Generalized two- and three-dimensional clipping, Computers
    & Graphics 1978.

    Args:
        polygon (Tensor): (..., K, 2).
        other (Tensor): Convex, with a positive area, (..., L, 2).
        margin (Tensor): By how much the other polygon is larger on each side, (...).
    """
    edge = other.roll(-1, -2) - other
    squared_length = edge.square().sum(-1)
    is_edge = squared_length > 0  # a corner may be repeated
    length = squared_length.where(is_edge, 1.0).sqrt()
    away = polygon[..., :, None, :] - other[..., None, :, :]
    start = cross(edge[..., None, :, :], away) / length[..., None, :]
    start = (start + margin[..., None, None]).where(is_edge[..., None, :], 1.0)
    end = start.roll(-1, -2)  # an edge ends where the next one starts
    rise = end - start
    place = -start / rise.where(rise != 0, 1.0)
    enter = place.where((start < 0) & (rise > 0), 0.0)
    enter = enter.where((start >= 0) | (rise != 0), 2.0)  # parallel, and outside
    leave = place.where((end < 0) & (rise < 0), 1.0)
    return (leave.amin(-1) - enter.amax(-1)).clamp(min=0)


def shared_area(first: Tensor, second: Tensor) -> Tensor:
    """Return the areas that convex polygons share, (...).

    The border of what they share consists of the first one's edges in the second and
    the second one's in the first; the shoelace formula of both is the area. Edges that
    coincide count once, since the second polygon is taken to be a trifle larger.

    Args:
        first (Tensor): (..., K, 2), of positive area.
        second (Tensor): (..., L, 2), of positive area.
    """
    corners = torch.cat([first, second], -2)
    center = corners.detach().mean(-2, keepdim=True)
    first, second = first - center, second - center
    extent = (corners.detach() - center).abs().amax((-1, -2))
    margin = 1e-13 * extent
    area = torch.zeros_like(margin)
    for polygon, other, wider in ((first, second, margin), (second, first, -margin)):
        share = inside_share(polygon, other, wider)
        area = area + (share * cross(polygon, polygon.roll(-1, -2))).sum(-1) / 2
    return area.clamp(min=0)


def shared_area_of_quadrilaterals(first: Tensor, second: Tensor) -> Tensor:
    """Return the areas that quadrilaterals (..., 4, 2) share, which may be concave.

    A diagonal cuts each into two triangles, of which one counts as negative if the
    quadrilateral is concave there.
    """
    area = torch.zeros_like(first[..., 0, 0])
    for triangle, sign in triangles(first):
        area = area + sign * shared_area_with_quadrilateral(triangle, second)
    return area.abs()


def shared_area_with_quadrilateral(convex: Tensor, quadrilateral: Tensor) -> Tensor:
    """Return the areas that convex polygons (..., K, 2) of positive area share with
    quadrilaterals (..., 4, 2), which may be concave, (...)."""
    area = torch.zeros_like(convex[..., 0, 0])
    for triangle, sign in triangles(quadrilateral):
        area = area + sign * shared_area(convex, triangle)
    return area.abs()


def triangles(quadrilateral: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield two triangles (..., 3, 2), of positive area, and their signs (...)."""
    for corners in ([0, 1, 2], [0, 2, 3]):
        triangle = quadrilateral[..., corners, :]
        yield turned(triangle), signed_area(triangle).sign()


def turned(polygon: Tensor) -> Tensor:
    """Return polygons (..., K, 2) in the order in which their area is positive."""
    positive = signed_area(polygon)[..., None, None] >= 0
    return polygon.where(positive, polygon.flip(-2))


def hull_indices(points: Tensor) -> Tensor:
    """Return indices of the corners of convex hulls, in their order; (B, P), where the
    first one is repeated at the end if a hull has fewer.

    Source: Jarvis, On the identification of the convex hull of a finite set of points
    in the plane, Information Processing Letters 1973.

    Args:
        points (Tensor): (B, P, 2).
    """
    points = points.detach()
    lowest = points[..., 1] == points[..., 1].amin(1, keepdim=True)
    start = points[..., 0].where(lowest, torch.inf).argmin(1)
    rows = torch.arange(len(points), device=points.device)
    corners, closed = [start], torch.zeros_like(start, dtype=torch.bool)
    for _ in range(points.shape[1] - 1):
        current = points[rows, corners[-1]]
        following = _turn_least(points, current, corners[-1])
        closed = closed | (points[rows, following] == points[rows, start]).all(1)
        corners.append(following.where(~closed, start))
    return torch.stack(corners, 1)


def _turn_least(points: Tensor, current: Tensor, index: Tensor) -> Tensor:
    """Of the points (B, P, 2), the index of the one from which all others are to the
    left of the current point (B, 2), the farthest of several."""
    best, rows = index, torch.arange(len(points), device=points.device)
    for candidate in range(points.shape[1]):
        to_best = points[rows, best] - current
        to_candidate = points[:, candidate] - current
        turn = cross(to_best, to_candidate)
        farther = to_candidate.square().sum(1) > to_best.square().sum(1)
        better = (turn < 0) | ((turn == 0) & farther)
        best = best.where(~better, torch.full_like(best, candidate))
    return best


def hulls(points: Tensor) -> Tensor:
    """Return corners of convex hulls of points (B, P, 2), of positive area, (B, P, 2),
    the first one repeated at the end if there are fewer."""
    places = hull_indices(points)
    return points.gather(1, places[..., None].expand(-1, -1, 2))


def pieces(rows: int, columns: int) -> Iterator[slice]:
    """Yield slices of the rows of a table, so that each piece has at most PAIRS
    entries."""
    step = max(PAIRS // max(columns, 1), 1)
    for start in range(0, rows, step):
        yield slice(start, start + step)


def corners_of(boxes: Tensor) -> Tensor:
    """Return the corners (..., 4, 2) of rotated boxes (..., 5)."""
    center, width, height = boxes[..., None, :2], boxes[..., 2:3], boxes[..., 3:4]
    cos, sin = boxes[..., 4:5].cos(), boxes[..., 4:5].sin()
    x = torch.cat([-width, width, width, -width], -1) / 2
    y = torch.cat([-height, -height, height, height], -1) / 2
    return center + torch.stack([x * cos - y * sin, x * sin + y * cos], -1)


@dataclass(frozen=True)
class Polygons:
    """Boxes as polygons, and how the area that two share is computed."""

    corners: Tensor
    """(..., 4, 2), float64."""
    shared_area: Callable[[Tensor, Tensor], Tensor]

    def __getitem__(self, index: Any) -> 'Polygons':
        return replace(self, corners=self.corners[index])


def rectangles(boxes: Tensor) -> Polygons:
    """Return rotated boxes (B, 5) as polygons."""
    corners = turned(corners_of(boxes.double()))
    return Polygons(corners=corners, shared_area=shared_area)


def quadrilaterals(boxes: Tensor) -> Polygons:
    """Return quadrilaterals (B, 8) as polygons."""
    corners = boxes.double().view(-1, 4, 2)
    return Polygons(corners=corners, shared_area=shared_area_of_quadrilaterals)


def overlaps(first: Polygons, second: Polygons, mode_flag: int = 0) -> Tensor:
    """Return overlaps (...) of polygons whose shapes broadcast; 0 where one has no
    area."""
    shape = torch.broadcast_shapes(first.corners.shape, second.corners.shape)
    near = _bounds_overlap(first.corners, second.corners)
    pairs = [polygons.corners.expand(shape)[near] for polygons in (first, second)]
    area, other_area = (signed_area(p.corners).abs() for p in (first, second))
    shared = torch.zeros(shape[:-2], dtype=area.dtype, device=area.device)
    shared[near] = first.shared_area(*pairs)
    whole = area if mode_flag == FOREGROUND else area + other_area - shared
    smallest = torch.minimum(area, other_area)
    return (shared / whole).where(~(smallest < SMALLEST_AREA), 0.0)


def _bounds_overlap(first: Tensor, second: Tensor) -> Tensor:
    """Return which upright rectangles around polygons (..., K, 2) have points in
    common."""
    low = torch.maximum(first.amin(-2), second.amin(-2))
    high = torch.minimum(first.amax(-2), second.amax(-2))
    return (low <= high).all(-1)
