"""Writes detections as files in COCO's format.

A data set (images, annotations, categories) is what annotation tools import, and what
``mmlinattn new-config`` reads. Results are what ``pycocotools.coco.COCO.loadRes`` takes
beside that data set. See https://cocodataset.org, "Data format" and "Results format".
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from contourpy import FillType, contour_generator
from pycocotools import mask as coco_masks

from mmlinattn.own_data import read_headers
from mmlinattn.utils.files import MARK, whole_file

# by the names of the files, a model's number is between both
DATASET, RESULTS = 'coco{}.json', 'coco_results{}.json'
DIGITS = 3  # of a place in pixels


class Detections(NamedTuple):
    """What a detector found in an image.

    Attributes:
        name: The image's path in its folder.
        path: The image.
        objects: Of :func:`~mmlinattn.deployment.predictor.as_json`: name, score, box
            (x1, y1, x2, y2) in pixels, or (x, y, width, height, angle) in pixels and
            radians, and a mask, if any.
    """

    name: str
    path: Path
    objects: list[dict[str, Any]]


class CocoFiles(NamedTuple):
    """The two files of a model's detections."""

    dataset: Path
    results: Path

    @classmethod
    def of(cls, folder: Path, number: str = '') -> 'CocoFiles':
        """Return the files in a folder; ``number`` tells several models apart."""
        return cls(
            folder / DATASET.format(number and f'_{number}'),
            folder / RESULTS.format(number and f'_{number}'),
        )

    @property
    def to_protect(self) -> list[Path]:
        """The files that may be of others: results bear no mark, the data set does."""
        return [self.dataset] if self.dataset.exists() else [*self]

    def write(self, images: Sequence[Detections], classes: Sequence[str]) -> None:
        """Write both files, each whole or not at all."""
        dataset, results = to_coco(images, classes)
        for content, path in zip((dataset, results), self):
            with whole_file(path) as draft:
                draft.write_text(json.dumps(content, ensure_ascii=False), 'utf-8')


def to_coco(
    images: Sequence[Detections], classes: Sequence[str]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return detections as a data set and as results of COCO.

    Ids begin with 1, categories in the order of the classes. Masks are polygons in the
    data set, and compressed run lengths in the results. Rotated boxes are polygons of
    four corners, within upright boxes.
    """
    # a label without a name is its number
    names = dict.fromkeys([*classes, *(x['name'] for im in images for x in im.objects)])
    ids = {name: i for i, name in enumerate(names, 1)}
    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for image_id, image in enumerate(images, 1):
        for entry in image.objects:
            shared = dict(
                image_id=image_id,
                category_id=ids[entry['name']],
                score=entry['score'],
                bbox=upright_box(entry['box']),
            )
            annotation = dict(shared, id=len(annotations) + 1, **shape_of(entry))
            annotations.append(annotation)
            results.append(dict(shared, **result_shape(entry, annotation)))
    dataset = dict(
        info=dict(description=MARK),
        images=image_entries(images),
        annotations=annotations,
        categories=[dict(id=i, name=name) for name, i in ids.items()],
    )
    return dataset, results


def image_entries(images: Sequence[Detections]) -> list[dict[str, Any]]:
    """Return names and sizes of images, rotated as models see them.

    Raises:
        ValueError: If OpenCV does not read one.
    """
    headers = read_headers([image.path for image in images])
    entries = []
    for i, (image, header) in enumerate(zip(images, headers), 1):
        if header is None:
            raise ValueError(f'{image.path} can not be read by OpenCV')
        width, height = header.size
        name = Path(image.name).as_posix()
        entries.append(dict(id=i, file_name=name, width=width, height=height))
    return entries


def upright_box(box: Sequence[float]) -> list[float]:
    """COCO's x, y, width, height of a box; for a rotated one, of that around it."""
    if len(box) == 5:
        corners = np.array(corners_of(box)).reshape(4, 2)
        box = [*corners.min(0), *corners.max(0)]
    x1, y1, x2, y2 = (round(float(place), DIGITS) for place in box)
    return [x1, y1, round(x2 - x1, DIGITS), round(y2 - y1, DIGITS)]


def corners_of(box: Sequence[float]) -> list[float]:
    """Return places (x, y) of the four corners of a rotated box, one after the
    other."""
    x, y, width, height, angle = box
    across = np.array([np.cos(angle), np.sin(angle)]) * width / 2
    down = np.array([-np.sin(angle), np.cos(angle)]) * height / 2
    signs = ((-1, -1), (1, -1), (1, 1), (-1, 1))
    corners = [np.array([x, y]) + i * across + j * down for i, j in signs]
    return np.concatenate(corners).round(DIGITS).tolist()


def shape_of(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the outline, area in pixels and COCO's mark of a crowd for an object."""
    box = entry['box']
    if 'mask' in entry:
        runs = entry['mask']
        segmentation: Any = polygons_of(decode(runs))
        area = float(sum(runs['counts'][1::2]))
    elif len(box) == 5:
        segmentation, area = [corners_of(box)], box[2] * box[3]
    else:
        segmentation, area = [], (box[2] - box[0]) * (box[3] - box[1])
    return dict(segmentation=segmentation, area=area, iscrowd=0)


def result_shape(entry: dict[str, Any], annotation: dict[str, Any]) -> dict[str, Any]:
    """Return the outline of an object in results, which may have none."""
    if 'mask' in entry:
        return dict(segmentation=compress(entry['mask']))
    if annotation['segmentation']:
        return dict(segmentation=annotation['segmentation'])
    return {}


def compress(runs: dict[str, Any]) -> dict[str, Any]:
    """COCO's compressed run lengths of a mask's uncompressed ones."""
    height, width = runs['size']
    packed = coco_masks.frPyObjects(dict(runs), height, width)
    return dict(size=[height, width], counts=packed['counts'].decode('ascii'))


def decode(runs: dict[str, Any]) -> np.ndarray:
    """Return the mask (H, W), bool, of run lengths down the columns."""
    counts = runs['counts']
    values = np.arange(len(counts)) % 2 == 1
    height, width = runs['size']
    return np.repeat(values, counts).reshape(width, height).T


def polygons_of(mask: np.ndarray) -> list[list[float]]:
    """Return polygons of a mask (H, W), bool, that cover its pixels and no others by
    COCO's rules.

    A hole is joined to the border by a line there and back, as polygons have no holes.
    """
    # places are centers of pixels; outside of the padded mask is nothing
    contours: Any = contour_generator(
        z=np.pad(mask, 1).astype(float), fill_type=FillType.OuterOffset
    )
    areas, offsets = contours.filled(0.5, 2)
    polygons = []
    for area, ends in zip(areas, offsets):
        # the last point of a ring is its first one
        rings = [corners(area[i : j - 1] - 0.5) for i, j in zip(ends, ends[1:])]
        polygon = rings[0]
        for hole in rings[1:]:
            polygon = join(polygon, hole)
        polygons.append(polygon.ravel().tolist())
    return polygons


def corners(ring: np.ndarray) -> np.ndarray:
    """Return a closed ring (N, 2) without the points on straight lines."""
    before = ring - np.roll(ring, 1, 0)
    after = np.roll(ring, -1, 0) - ring
    turns = before[:, 0] * after[:, 1] != before[:, 1] * after[:, 0]
    return ring[turns]


def join(ring: np.ndarray, hole: np.ndarray) -> np.ndarray:
    """Return one ring of a ring (N, 2) and a hole (M, 2), joined where they are
    nearest."""
    distances = ((ring[:, None] - hole) ** 2).sum(-1)
    i, j = np.unravel_index(distances.argmin(), distances.shape)
    turned = np.roll(hole, -j, 0)
    return np.concatenate([ring[: i + 1], turned, turned[:1], ring[i:]])
