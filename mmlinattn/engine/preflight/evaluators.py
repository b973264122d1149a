"""Compares the annotations that an evaluation reads with those of its data set."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

from mmengine.config import Config


def check_files(
    cfg: Config, name: str, parts: list[Any], warn: Callable[[str], object]
) -> None:
    """Compare the file of an evaluator with that of its data set, 'val' or 'test'.

    Raises:
        ValueError: If the evaluator's has other photos, or others under their numbers:
            predictions would be compared with the objects of other photos.
    """
    files = [getattr(part, 'ann_file', None) for part in parts]
    if len(parts) != 1 or not isinstance(files[0], str):
        return  # a metric can't be one of several sets alone
    for index, metric in enumerate(metrics_of(cfg.get(f'{name}_evaluator'))):
        path = metric.get('ann_file')
        if isinstance(path, str) and is_other(path, files[0]):
            several = isinstance(cfg[f'{name}_evaluator'], (list, tuple))
            key = f'{name}_evaluator{f".{index}" if several else ""}.ann_file'
            compare_photos(key, path, name, parts[0], warn)


def metrics_of(evaluator: Any) -> list[Any]:
    """Return the configs of an evaluator's metrics."""
    if isinstance(evaluator, dict) and 'metrics' in evaluator:
        evaluator = evaluator['metrics']
    evaluator = evaluator if isinstance(evaluator, (list, tuple)) else [evaluator]
    return [metric for metric in evaluator if isinstance(metric, dict)]


def is_other(path: str, known: str) -> bool:
    """Return whether two paths of files on this machine are those of different
    files."""
    both = os.path.isfile(path) and os.path.isfile(known)
    return both and not os.path.samefile(path, known)


def compare_photos(
    key: str, path: str, name: str, dataset: Any, warn: Callable[[str], object]
) -> None:
    """Compare the photos in an evaluator's file with those of a data set."""
    known, own = photos_in(path), photos_of(dataset)
    if known is None or own is None:
        return
    other = [number for number in own if not same_photo(known, own, number)]
    place = f'{key}={path!r} is not the file of {name}_dataloader, {dataset.ann_file!r}'
    if other:
        raise ValueError(
            f'{place}: {len(other)} of its {len(own)} photos are others, or have no '
            f'objects there, such as {own[other[0]]!r}. Set {key} to the file of the '
            'data set'
        )
    if len(known) > len(own):
        warn(
            f'{place}: it has {len(known) - len(own)} photos more, whose objects count '
            'as not found'
        )


def photos_in(path: str) -> Optional[dict[Any, str]]:
    """Return names of photos by their numbers in a COCO file; None for another file."""
    try:
        content = json.loads(Path(path).read_bytes())
    except ValueError:
        return None
    images = content.get('images') if isinstance(content, dict) else None
    if not isinstance(images, list):
        return None
    return {image.get('id'): file_name(image.get('file_name')) for image in images}


def photos_of(dataset: Any) -> Optional[dict[Any, str]]:
    """Return names of photos by their numbers in a data set; None if it has no
    numbers."""
    if not hasattr(dataset, 'get_data_info'):
        return None
    names = {}
    for i in range(len(dataset)):  # all objects at once would take much memory
        info = dataset.get_data_info(i)
        if 'img_id' not in info:
            return None
        names[info['img_id']] = file_name(info.get('img_path'))
    return names


def file_name(path: Any) -> str:
    """Return the last part of a path, of Windows, too; '' for none."""
    return str(path or '').replace('\\', '/').rpartition('/')[2]


def same_photo(known: dict[Any, str], own: dict[Any, str], number: Any) -> bool:
    """Return whether a number is of the same photo in two files, as far as they name
    it."""
    if number not in known:
        return False
    one, other = known[number], own[number]
    return not one or not other or Path(one).stem == Path(other).stem
