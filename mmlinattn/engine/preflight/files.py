"""Looks for the files of photos and label maps, and for photos of other sizes than
their annotations have."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Optional

from .building import LIBRARY_ERRORS
from .photos import header_size
from .samples import LIBRARIES, parts_of

# Files that are looked for, those whose headers are read, and seconds for both.
MOST_FILES, MOST_HEADERS, MOST_SECONDS = 20_000, 2_000, 20.0
# What steps read, by the names of their classes.
KEYS = dict(LoadImageFromFile='img_path', LoadAnnotations='seg_map_path')


def check_photos(key: str, dataset: Any, warn: Callable[[str], object]) -> None:
    """Look for the files of a data set's photos and label maps on this machine, of a
    large one for the first ones.

    Raises:
        ValueError: If one is missing or empty, at which a training ends. ``warn`` takes
            it where the data set may leave it out, and photos of other sizes than
            their annotations have.
    """
    steps = reading_steps(dataset)
    if 'img_path' not in steps or not hasattr(dataset, 'get_data_info'):
        return
    look = look_at(dataset, steps)
    if look.lost:
        text = (
            f'{key}: {len(look.lost)} files of its {look.seen} photos are missing or '
            f'empty, such as {look.lost[0]}: bring them back, or write the annotations '
            'anew'
        )
        if getattr(steps['img_path'], 'ignore_empty', False) or not is_known(dataset):
            warn(text)
        else:
            raise ValueError(text)
    if look.resized:
        warn(
            f'{key}: {len(look.resized)} photos have other sizes than their '
            f'annotations say, such as {look.resized[0]}: boxes lie at wrong places if '
            'photos were replaced'
        )


class Look(NamedTuple):
    """What there is of a data set's files.

    Attributes:
        seen (int): Photos that were looked for.
        lost (list[str]): Files that are missing or empty.
        resized (list[str]): Photos of other sizes than their annotations have, in
            words.
    """

    seen: int
    lost: list[str]
    resized: list[str]


def reading_steps(dataset: Any) -> dict[str, Any]:
    """Return steps that read files, by the key that has the path."""
    return {
        KEYS[name]: step
        for name, step in steps_of(dataset)
        if name == 'LoadImageFromFile'
        or (name == 'LoadAnnotations' and getattr(step, 'with_seg', False))
    }


def look_at(dataset: Any, keys: Iterable[str]) -> Look:
    """Look for the files that the keys of a data set's entries name, until the time is
    over."""
    lost, resized = list[str](), list[str]()
    seen, begin = 0, perf_counter()
    for i in range(min(len(dataset), MOST_FILES)):
        if perf_counter() - begin > MOST_SECONDS:
            break
        info, seen = dataset.get_data_info(i), i + 1
        paths = [info[key] for key in keys if isinstance(info.get(key), str)]
        lost += [path for path in paths if '://' not in path and not has_content(path)]
        if i < MOST_HEADERS:
            resized += filter(None, [other_size(info)])
    return Look(seen, lost, resized)


def read_photos(name: str, dataset: Any, say: Callable[[str], object]) -> None:
    """Read every photo of a data set, 'train', 'val' or 'test', as a run reads it.
    ``say`` takes the number of photos and the seconds.

    Raises:
        ValueError: If some can't be read.
    """
    count, broken, begin = 0, list[str](), perf_counter()
    for part in parts_of(dataset):
        steps = [step for kind, step in steps_of(part) if kind == 'LoadImageFromFile']
        if not steps or not hasattr(part, 'get_data_info'):
            continue

        def read(i: int, part: Any = part, step: Any = steps[0]) -> Optional[str]:
            info = part.get_data_info(i)
            try:
                step(info)
            except LIBRARY_ERRORS as error:
                return f'{info.get("img_path")} ({" ".join(str(error).split())})'
            return None

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            broken += filter(None, pool.map(read, range(len(part))))
        count += len(part)
    say(f'{name}_dataloader: read {count} photos in {perf_counter() - begin:.1f} s')
    if broken:
        raise ValueError(
            f'{name}_dataloader: {len(broken)} of {count} photos can not be read, such '
            f'as {broken[0]}'
        )


def steps_of(dataset: Any) -> Iterator[tuple[str, Any]]:
    """Yield the steps of a data set's pipeline with the names of their classes, and
    those of the libraries' classes that they inherit from; none of files elsewhere."""
    for step in getattr(getattr(dataset, 'pipeline', None), 'transforms', None) or ():
        if not getattr(step, 'backend_args', None):
            for kind in type(step).__mro__[:-1]:
                yield kind.__name__, step


def has_content(path: str) -> bool:
    """Return whether there is a file that is not empty."""
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def other_size(info: dict[str, Any]) -> Optional[str]:
    """Return a photo and its size in words, if that is not the one of its annotations,
    in whatever direction the photo is shown."""
    noted = int(info.get('width') or 0), int(info.get('height') or 0)
    if 0 in noted or not isinstance(info.get('img_path'), str):
        return None
    size = header_size(info['img_path'])
    if size == (0, 0) or sorted(size) == sorted(noted):
        return None
    return (
        f'{Path(info["img_path"]).name}, {size[0]} x {size[1]} pixels and not '
        f'{noted[0]} x {noted[1]}'
    )


def is_known(dataset: Any) -> bool:
    """Return whether a data set is one of the libraries'."""
    return type(dataset).__module__.partition('.')[0] in LIBRARIES
