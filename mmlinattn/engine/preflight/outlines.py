"""Checks outlines of objects, which pycocotools takes on trust: a corner that is far
away, or run lengths of another size, end a process without a line."""

from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple, Optional

import numpy as np

# Pixels from the image to a corner. Drawing a polygon takes time and memory by its
# length: 200 MB at this bound, and a crash of the process at 1000 times of it.
REACH = 10**6
MOST_IMAGES = 20_000
# COCO's text of run lengths: characters of 5 bits, the sixth says that more follow
FIRST, BITS, SIGN, MORE = 48, 5, 0x10, 0x20
LONGEST = 6  # characters of a length below 2**25, with its sign


class Fault(NamedTuple):
    """What is wrong with an outline: its kind, and the numbers."""

    kind: str
    detail: str


FAR = 'outlines reach far beyond their image'
OTHER_SIZE = 'masks have run lengths for another size than their image'
BROKEN = 'masks have run lengths that do not add up to their size'


def find_fault(
    outline: Any, size: tuple[int, int], reach: float = REACH
) -> Optional[Fault]:
    """Return what makes an outline unusable, or None.

    Args:
        outline (list or dict): Polygons x, y, x, y, ..., or run lengths, as COCO has
            them.
        size (tuple[int]): Width and height of the image in pixels.
        reach (float): Pixels that a corner may be away from the image.
    """
    if isinstance(outline, Mapping):
        return _fault_of_runs(outline, size)
    if not isinstance(outline, (list, tuple)):
        return None
    parts = [part for part in outline if isinstance(part, (list, tuple))]
    places = [place for place in chain.from_iterable(parts) if _is_number(place)]
    most = max(size) + reach
    # a sum is NaN if a place is
    for place in (max(places, default=0), min(places, default=0), sum(places) * 0):
        if not -reach <= place <= most:
            return Fault(FAR, f'a corner is at {place:g} pixels')
    return None


def _is_number(place: Any) -> bool:
    return isinstance(place, (int, float))


def _fault_of_runs(runs: Mapping[str, Any], size: tuple[int, int]) -> Optional[Fault]:
    stated = size_of_runs(runs)
    if stated != size:
        text = ' x '.join(map(str, stated)) if stated else str(runs.get('size'))[:40]
        return Fault(
            OTHER_SIZE, f'they are for {text} pixels, not {size[0]} x {size[1]}'
        )
    counts = read_counts(runs.get('counts'))
    if counts is None:
        return Fault(BROKEN, 'they are no lengths')
    total = int(counts.sum())
    if total != size[0] * size[1]:
        return Fault(BROKEN, f'they have {total} pixels, not {size[0] * size[1]}')
    return None


def size_of_runs(runs: Mapping[str, Any]) -> Optional[tuple[int, int]]:
    """Return width and height that run lengths state; None if they are no sizes."""
    size = runs.get('size')
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        return None
    if not all(isinstance(side, (int, np.integer)) and side > 0 for side in size):
        return None
    return int(size[1]), int(size[0])


def read_counts(counts: Any) -> Optional[np.ndarray]:
    """Run lengths (N,), int64, of a list or of COCO's text; None for anything else."""
    if isinstance(counts, bytes):
        counts = counts.decode('latin-1')
    if isinstance(counts, str):
        return _decode_text(counts)
    try:
        lengths = np.array(counts)
    except ValueError:  # of several depths
        return None
    if lengths.ndim != 1 or lengths.dtype.kind not in 'iuf':
        return None
    fits = (lengths >= 0) & (lengths < 2**32) & (lengths % 1 == 0)
    return lengths.astype(np.int64) if fits.all() else None


def _decode_text(text: str) -> Optional[np.ndarray]:
    """Run lengths of COCO's text, in which a number is the difference from the last but
    one."""
    codes = np.frombuffer(text.encode('utf-32-le'), np.uint32).astype(np.int64) - FIRST
    if not codes.size:
        return np.zeros(0, np.int64)
    if codes.min() < 0 or codes.max() >= 2 * MORE or codes[-1] & MORE:
        return None
    ends = np.flatnonzero(codes & MORE == 0)
    begins = np.concatenate([[0], ends[:-1] + 1])
    if (ends - begins).max() >= LONGEST + 1:
        return None
    place = np.arange(codes.size) - np.repeat(begins, ends - begins + 1)
    values = np.add.reduceat((codes & (MORE - 1)) << (BITS * place), begins)
    is_negative = codes[ends] & SIGN != 0
    values -= np.where(is_negative, 1 << (BITS * (ends - begins + 1)), 0)
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    return values if values.min() >= 0 else None


def check_outlines(key: str, parts: list[Any], sample: Any) -> None:
    """Raise a ValueError for the first object of data sets whose outline can't be
    drawn, if their samples have masks."""
    samples = sample.get('data_samples') if isinstance(sample, dict) else None
    if not hasattr(getattr(samples, 'gt_instances', None), 'masks'):
        return
    for part in parts:
        count = len(part) if hasattr(part, 'get_data_info') else 0
        for i in range(min(count, MOST_IMAGES)):
            _check_image(key, part.get_data_info(i))


def _check_image(key: str, info: Mapping[str, Any]) -> None:
    width, height = info.get('width'), info.get('height')
    objects = info.get('instances')
    if not width or not height or not isinstance(objects, (list, tuple)):
        return
    for i, entry in enumerate(objects):
        fault = find_fault(entry.get('mask'), (int(width), int(height)))
        if fault:
            raise ValueError(
                f'{key}: the outline of object {i} of {info.get("img_path")} can not '
                f'be drawn: {fault.detail}. Correct it in the annotations, or remove it'
            )
