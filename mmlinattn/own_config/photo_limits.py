"""What a config must know of its photos: the most objects in one, and the smallest."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mmlinattn.models.backbones.base import MIN_SIDE

# COCO's configs keep so many detections of a photo, and its mAP looks at so many.
COCO_LIMIT = 100


@dataclass(frozen=True)
class ObjectLimits:
    """Numbers that follow from the most objects in a photo.

    Attributes:
        most_objects (int): The greatest number of objects in a photo.
    """

    most_objects: int

    @property
    def detections(self) -> int:
        """Detections to keep: half as many again, in hundreds."""
        return max(-(-self.most_objects * 3 // 200) * 100, COCO_LIMIT)

    @property
    def regions(self) -> int:
        """Regions of two-stage detectors, of which detections are chosen."""
        return 2 * self.detections

    @property
    def are_usual(self) -> bool:
        """True if the limits of COCO's configs are enough."""
        return self.detections == COCO_LIMIT

    @property
    def score(self) -> str:
        """The score that chooses the best checkpoint: COCO's mAP looks at 100
        detections of a class, mAP_50 at all."""
        return 'bbox_mAP' if self.most_objects <= COCO_LIMIT else 'bbox_mAP_50'

    def values(self) -> dict[str, int]:
        """Return numbers for the templates of a config."""
        # without a GPU, fewer regions than those of the base config
        regions = 100 if self.are_usual else self.regions
        return dict(
            most_objects=self.most_objects,
            detections=self.detections,
            proposals=max(1000, self.detections),  # those of the evaluation
            regions=regions,
            candidates=2 * regions,
        )

    def entries(self, model: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return entries of a detector's config that limit its detections, by key of
        ``model``; none of them becomes smaller."""
        entries: dict[str, dict[str, Any]] = {}
        queries = {'panoptic_head': 'num_queries', 'rpn_head': 'num_proposals'}
        for part, key in queries.items():
            number = (model.get(part) or {}).get(key)
            if number:
                entries[part] = {key: max(number, self.detections)}
        test = model.get('test_cfg') or {}
        tested: dict[str, Any] = {}
        if test.get('rcnn'):
            regions = dict(nms_pre=2 * self.regions, max_per_img=self.regions)
            tested['rcnn'] = self.raised(test['rcnn'], max_per_img=self.detections)
            if test.get('rpn'):
                tested['rpn'] = self.raised(test['rpn'], **regions)
            trained = (model.get('train_cfg') or {}).get('rpn_proposal') or {}
            more = self.raised(trained, **regions)
            if any(trained[key] != number for key, number in more.items()):
                entries['train_cfg'] = dict(rpn_proposal=more)
        else:
            numbers = dict(max_per_img=self.detections, max_per_image=self.detections)
            tested = self.raised(test, nms_pre=10 * self.detections, **numbers)
        return {**entries, 'test_cfg': tested}

    @staticmethod
    def raised(config: dict[str, Any], **numbers: int) -> dict[str, int]:
        """Return those of numbers that a config has, where they are larger."""
        return {
            key: max(config[key], number)
            for key, number in numbers.items()
            if isinstance(config.get(key), int)
        }

    def lines(self, model: dict[str, Any]) -> str:
        """Return source of a config that sets the entries."""
        lines = [
            f'model.setdefault({key!r}, {{}}).update({entries!r})'
            for key, entries in self.entries(model).items()
        ]
        num_queries = model.get('num_queries')
        if num_queries:
            number = max(num_queries, self.detections)
            lines.append(f'model.update(num_queries={number})')
        return '\n'.join(lines)


def resized(size: tuple[int, int], scale: tuple[float, float]) -> tuple[int, int]:
    """Return width and height of a photo that is resized into (long, short), with its
    ratio kept, as MMCV rounds them."""
    factor = min(scale[0] / max(size), scale[1] / min(size))
    width, height = (int(side * factor + 0.5) for side in size)
    return width, height


def check_sizes(
    sizes: Iterable[tuple[int, int]], scale: tuple[int, int], zoom: float = 1.0
) -> tuple[int, int]:
    """Return width and height of the smallest photo as a model sees it, of photos that
    are resized into (long, short); a ValueError if it has no pixel there, or at a
    smaller scale of the training, ``zoom``."""
    smallest = min(sizes, key=lambda size: min(resized(size, scale)))
    width, height = resized(smallest, (scale[0] * zoom, scale[1] * zoom))
    if min(width, height) < 1:
        raise ValueError(
            f'a photo of {smallest[0]} x {smallest[1]} pixels becomes {width} x '
            f'{height} when its sides are resized to {scale[0]} and {scale[1]} at '
            'most: leave it out, or cut it'
        )
    return resized(smallest, scale)


def needs_padding(size: tuple[int, int]) -> bool:
    """Return True for a photo that is smaller than our backbones take."""
    return min(size) < MIN_SIDE
