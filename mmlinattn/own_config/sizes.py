"""The sizes of photos in a training, and how many are in a batch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median

from mmlinattn.own_data import OBJECT_TASKS, Note, OwnData

from .photo_limits import MIN_SIDE, check_sizes, needs_padding, resized
from .tasks import TASKS

SMALLEST_ZOOM = 0.5  # of scales in the training of a segmentor
MUCH_SMALLER = 0.5  # photos of label maps, in which small areas vanish
SMALL_OBJECT = 8  # pixels a side, two cells of the first map
SMALLEST = 128  # pixels to which the short side of small photos is enlarged

Size = tuple[int, int]


@dataclass(frozen=True)
class Sizes:
    """What a training makes of photos.

    Attributes:
        scale (tuple[int]): Their long and short side, in pixels.
        crop (tuple[int]): Height and width of a segmentor's part of a photo.
        batch (int): Photos on a device.
    """

    scale: Size
    crop: Size
    batch: int


def photo_sizes(data: OwnData) -> list[Size]:
    """Return width and height of all photos."""
    return [photo.size for photo in chain(*data.splits.values())]


def median_size(sizes: Sequence[Size]) -> Size:
    """Return the median width and the median height."""
    width, height = (round(median(sides)) for sides in zip(*sizes))
    return width, height


def choose_sizes(task: str, size: Size, num: float, memory: float) -> Sizes:
    """Return the sizes for photos of a median size (W, H) on devices with this many GB
    (a CPU: 0), with ``num`` photos for the training of each."""
    kind, least = TASKS[task], min(size)
    zoom = min(kind.longest / max(size), kind.shortest / least)
    zoom = min(zoom, max(1, SMALLEST / least))
    w, h = (round(side * zoom) for side in size)
    scale = max(h, w), min(h, w)
    width = scale[1] if kind.is_square else scale[0]
    return Sizes(
        scale=scale,
        crop=(min(h, kind.shortest), min(w, kind.shortest)),
        batch=choose_batch(task, scale[1] * width / 1e6, num, memory),
    )


def choose_batch(task: str, megapixels: float, num: float, memory: float) -> int:
    """Return photos in a batch of a device with this many GB (a CPU: 0)."""
    kind = TASKS[task]
    room = (memory * kind.megapixels_per_gb or kind.megapixels_on_cpu) / megapixels
    most = kind.largest_batch if memory else kind.largest_batch / 4
    # BatchNorm needs two values
    return max(int(min(room, most, num / 8)), 1 if task in OBJECT_TASKS else 2)


def small_object_notes(data: OwnData, scale: Size) -> list[Note]:
    """Return a note if most objects become very small in photos that are resized into
    (long, short)."""
    sides = []
    for photo in chain(*data.splits.values()):
        zoom = resized(photo.size, scale)[0] / photo.size[0]
        sides += [math.sqrt(item.area) * zoom for item in photo.objects]
    side = median(sides) if sides else SMALL_OBJECT
    if side >= SMALL_OBJECT:
        return []
    text = f'half of the objects are below {side:.1f} x {side:.1f} pixels '
    text += f'in photos of {scale[0]} x {scale[1]}: cut photos into tiles'
    return [Note(text)]


def reduced_notes(size: Size, scale: Size) -> list[Note]:
    """Return a note if label maps of a median size become much smaller."""
    zoom = resized(size, scale)[0] / size[0]
    if zoom >= MUCH_SMALLER:
        return []
    side = math.ceil(SMALL_OBJECT / zoom)
    text = f'photos of {size[0]} x {size[1]} become {scale[0]} x {scale[1]} pixels: '
    text += f'what is below {side} x {side} is hard to see; if it matters, cut photos '
    return [Note(f'{text}into tiles')]


def padding_source(task: str, sizes: Sequence[Size], scale: Size) -> str:
    """Return source of the option that pads photos which are too small for a backbone,
    or ''.

    Raises:
        ValueError: If nothing is left of a photo at this scale.
    """
    if task == 'cls':
        return ''
    zoom = SMALLEST_ZOOM if task == 'seg' else 1.0
    if not needs_padding(check_sizes(sizes, scale, zoom)):
        return ''
    return f', test_cfg=dict(size=({MIN_SIDE}, {MIN_SIDE}))'
