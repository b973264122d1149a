"""Outlines of objects: polygons, or their pixels in a photo or in a part of it.

A polygon is x, y, x, y, ... in pixels of the photo, and a size (width, height).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, cycle
from typing import Any, Optional

import cv2
import numpy as np
from pycocotools import mask as coco_masks
from pycocotools.coco import COCO

from mmlinattn.engine.preflight.outlines import (
    Fault,
    find_fault,
    read_counts,
    size_of_runs,
)

Polygon = tuple[float, ...]
Size = tuple[int, int]

NO_PIXEL = 'outlines have no pixel of their image'
FAR = 10  # sides of the photo that a corner may be away from it


@dataclass(frozen=True, eq=False)
class Patch:
    """An object's pixels (h, w), bool, in the part of a photo that begins at (left,
    top)."""

    left: int
    top: int
    pixels: np.ndarray

    @classmethod
    def cut(cls, left: int, top: int, pixels: np.ndarray) -> Optional['Patch']:
        """Return the smallest part that has the object's pixels; None without any."""
        x, y, width, height = cv2.boundingRect(np.ascontiguousarray(pixels, np.uint8))
        if not width:
            return None
        inside = pixels[y : y + height, x : x + width].astype(bool)
        return cls(left + x, top + y, inside)

    @property
    def box(self) -> tuple[float, float, float, float]:
        """The box (x, y, width, height) around it."""
        height, width = self.pixels.shape
        return float(self.left), float(self.top), float(width), float(height)

    def in_photo(self, size: Size) -> np.ndarray:
        """Return the pixels of a photo of a size, (H, W), uint8, 0 or 1."""
        mask = np.zeros(size[::-1], np.uint8)
        x, y = max(self.left, 0), max(self.top, 0)
        inside = self.pixels[y - self.top :, x - self.left :][
            : max(size[1] - y, 0), : max(size[0] - x, 0)
        ]
        mask[y : y + inside.shape[0], x : x + inside.shape[1]] = inside
        return mask


@dataclass(frozen=True)
class Outline:
    """The outline of an object: polygons, COCO's run lengths of the whole photo's
    pixels, or a part of the photo."""

    polygons: tuple[Polygon, ...] = ()
    runs: Optional[Mapping[str, Any]] = None
    patch: Optional[Patch] = None

    @property
    def area(self) -> float:
        """Square pixels of the object; 0 if run lengths are none."""
        if self.patch:
            return float(self.patch.pixels.sum())
        if self.runs:
            counts = read_counts(self.runs.get('counts'))
            return 0.0 if counts is None else float(counts[1::2].sum())
        return sum(map(polygon_area, self.polygons))

    @property
    def key(self) -> Any:
        """What tells it from other outlines: corners to the pixel, or all pixels."""
        if self.patch:
            return self.patch.box, self.patch.pixels.tobytes()
        if self.runs:
            return str(self.runs.get('counts'))
        return tuple(tuple(map(round, polygon)) for polygon in self.polygons)

    @property
    def runs_size(self) -> Optional[Size]:
        """The size of the photo that run lengths state, if it has any."""
        return size_of_runs(self.runs) if self.runs else None

    def find_fault(self, size: Size) -> Optional[Fault]:
        """Return what makes it unusable in a photo of a size, or None."""
        if not self.patch:
            fault = find_fault(self.to_coco(), size, FAR * max(size))
            if fault:
                return fault
        if self.area <= 0:
            return Fault(NO_PIXEL, 'their masks are empty')
        if self.runs:
            return None
        x, y, width, height = self.box()
        right, bottom = min(x + width, size[0]), min(y + height, size[1])
        if right - max(x, 0) > 0 < bottom - max(y, 0):
            return None
        return Fault(NO_PIXEL, f'one begins at ({x:g}, {y:g}) pixels')

    def in_photo(self, stated: Size, size: Size) -> 'Outline':
        """Return the outline in a photo that was resized from a stated size after it
        was labeled: its pixels are run lengths of the photo; polygons do not change."""
        if not self.patch and (not self.runs or stated == size):
            return self
        mask = self.patch.in_photo(stated) if self.patch else self.mask(stated)
        if stated != size:
            mask = cv2.resize(mask, size, interpolation=cv2.INTER_NEAREST_EXACT)
        return Outline(runs=encode(mask))

    def to_coco(self) -> Any:
        """Return what a COCO file calls the segmentation; a part must be in its
        photo."""
        return (
            dict(self.runs)
            if self.runs
            else [list(polygon) for polygon in self.polygons]
        )

    def mask(self, size: Sequence[int]) -> np.ndarray:
        """Return the object's pixels in a photo of a size, (H, W), uint8, 0 or 1."""
        coco = COCO()
        coco.imgs[0] = dict(width=size[0], height=size[1])
        return coco.annToMask(dict(image_id=0, segmentation=self.to_coco()))

    def box(self) -> tuple[float, float, float, float]:
        """Return the box (x, y, width, height) around it.

        Raises:
            ValueError: If run lengths do not add up to their size.
        """
        if self.patch:
            return self.patch.box
        if self.runs:
            size = self.runs_size
            fault = find_fault(self.runs, size or (0, 0))
            if fault or not size:
                raise ValueError(
                    f'{fault.kind}: {fault.detail}' if fault else 'no size'
                )
            x, y, width, height = cv2.boundingRect(self.mask(size))
            return float(x), float(y), float(width), float(height)
        return bounding_box(chain.from_iterable(self.polygons))

    def scaled(self, factors: tuple[float, float]) -> 'Outline':
        """Return polygons resized by factors of width and height; pixels are, in a
        photo."""
        polygons = (tuple(scale(polygon, factors)) for polygon in self.polygons)
        return Outline(tuple(polygons), self.runs, self.patch)

    def rectangle(self) -> Polygon:
        """Return the corners of the smallest rectangle of any direction around it."""
        size = self.runs_size
        if size:
            y, x = np.nonzero(self.mask(size))
            # corners of pixels, whose centers are half a pixel further
            corners = [(x + right, y + down) for right in (0, 1) for down in (0, 1)]
            points = np.hstack(corners).T
        else:
            points = np.reshape(list(chain(*self.polygons)), (-1, 2))
        rectangle = cv2.minAreaRect(points.astype(np.float32))
        return tuple(cv2.boxPoints(rectangle).ravel().tolist())


def encode(mask: np.ndarray) -> dict[str, Any]:
    """COCO's run lengths, as text, of a mask (H, W), uint8."""
    runs = coco_masks.encode(np.asfortranarray(mask))
    return dict(size=list(mask.shape), counts=runs['counts'].decode('ascii'))


def scale(places: Iterable[float], factors: tuple[float, float]) -> list[float]:
    """Return places x, y, x, y, ... in a photo that was resized by factors."""
    return [float(place * factor) for place, factor in zip(places, cycle(factors))]


def polygon_area(polygon: Iterable[float]) -> float:
    """Return the area of a polygon; 0 if it has too few or half corners."""
    places = np.array(list(polygon), np.float32)
    if len(places) < 6 or len(places) % 2:
        return 0.0
    return float(cv2.contourArea(places.reshape(-1, 2)))


def bounding_box(places: Iterable[Any]) -> tuple[float, float, float, float]:
    """Return the box around points x, y, x, y, ..., which may be written as text."""
    points = np.reshape([float(place) for place in places], (-1, 2))
    (x, y), (width, height) = points.min(0).tolist(), np.ptp(points, 0).tolist()
    return x, y, width, height
