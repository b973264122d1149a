"""Finds the source of a photo by its name: the photo that a copy was made of, the large
one that a tile was cut out of, or the video of a frame.

A name tells its source by a mark that tools write. Numbers alone tell nothing:
``IMG_0001`` and ``IMG_0002`` are two photos.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from .records import Note, Photo, Splits, notes_on
from .words import LONE_SPLIT, NEUTRAL_WORDS, split_of_name, stem_of, words_of

# Roboflow's copies, and the frames that it takes out of a video
ROBOFLOW = re.compile(r'(.+?)(?:[_-](?:bmp|jpe?g|png|tiff?|webp))?\.rf\.[0-9a-z]{16,}')
ROBOFLOW_FRAME = re.compile(r'(.+[_-](?:avi|m4v|mkv|mov|mp4|webm))-\d+')
# frames by a word and a number, behind the video's name or alone in its folder
FRAME = re.compile(r'(|.+?[\W_])(?:frame|frm)[_-]?\d+(?:[_-]?\d+m?s)?')
# copies by a word of augmentation, and by words of what was changed
AUGMENTED = re.compile(r'(.+?)(?:[_-]aug(?:ment(?:ed)?)?(?:[_-]?\d+)*)+')
CHANGES = (
    *('blur', 'blurred', 'bright', 'brightness', 'contrast', 'crop', 'cropped'),
    *('flip', 'flipped', 'hflip', 'vflip', 'jitter', 'mirror', 'mirrored', 'noise'),
    *('noisy', 'rot', 'rotate', 'rotated', 'rotation', 'scaled', 'shear', 'sheared'),
    *('aug', 'augmented', 'copy', 'zoom'),
)
CHANGE = rf'(?:{"|".join(sorted(CHANGES, key=len, reverse=True))})'
CHANGED = re.compile(rf'(.+?)(?:[ _-]+{CHANGE}(?:[ _-]?\(?\d+\)?(?:deg)?|[_-][hv])?)+')
CHANGED_BEFORE = re.compile(rf'(?:{CHANGE}[_-]?\d*[_-])+(.+)')
AUGMENTOR = re.compile(r'.+_original_(.+?)(?:\.(?:jpe?g|png))?_[0-9a-f-]{36}')
# tiles by a word, by letters before their numbers, and as DOTA's tools write them
TILE = re.compile(
    r'(.+?)[_-](?:tile|patch)[_-]?\d+(?:[_x-]\d+)*'
    r'|(.+?)[_-]+(?:x|r|row|left)[_-]?\d+[_-]*(?:y|c|col|column|top)[_-]?\d+'
    r'|(.+?)[_-]+(?:y|c|col|column|top)[_-]?\d+[_-]*(?:x|r|row|left)[_-]?\d+'
    r'|(.+?)__\d+(?:\.\d+)?__-?\d+___-?\d+'
)
# tiles by two numbers alone, which have to be a whole grid
PAIR = re.compile(r'(.*?)[_-](\d+)[_-](\d+)')
LEAST_STEP = 16  # of tiles in pixels


class Sources:
    """The sources of photos.

    Args:
        root (Path): The folder of the data; names of splits below it do not count.
        paths (Iterable[Path]): All photos.
    """

    def __init__(self, root: Path, paths: Iterable[Path]) -> None:
        self.root = root
        self.keys: dict[Path, Any] = {}
        stems: dict[tuple[str, ...], dict[str, list[Path]]] = defaultdict(dict)
        for path in paths:
            stem = stem_of(path.name)
            stems[self._folder(path)].setdefault(stem, []).append(path)
        for folder, names in stems.items():
            last = letters_of(folder[-1]) if folder else ''
            # a folder "floor_tile" has photos of tiles
            sources = find_sources(name for name in names if letters_of(name) != last)
            shared = Counter(sources.values())
            for name, several in names.items():
                source = sources.get(name, name)
                # without a mark, equal names of several splits tell nothing
                is_alone = source == name and shared[source] < 2
                for path in several:
                    self.keys[path] = path if is_alone else (*folder, source)

    def _folder(self, path: Path) -> tuple[str, ...]:
        """Return the folders of a photo that are no split and say nothing of what it
        shows."""
        parts = path.parent.relative_to(self.root).parts
        folders = []
        for part in parts:
            rest = LONE_SPLIT.sub('', part.lower())
            neutral = words_of(part) and {*words_of(part)} <= NEUTRAL_WORDS
            if not split_of_name(part) and not neutral:
                folders.append(rest.strip('_- '))
        return tuple(folders)

    def group(self, photos: Sequence[Photo]) -> list[list[Photo]]:
        """Return photos of one source together, in the order of the first of each."""
        groups: dict[Any, list[Photo]] = {}
        for photo in photos:
            groups.setdefault(self.keys[photo.path], []).append(photo)
        return list(groups.values())

    def notes(self, splits: Splits) -> list[Note]:
        """Return notes on sources whose photos are in training and beside it."""
        train = {self.keys[photo.path]: photo for photo in splits['train']}
        held = {
            self.keys[photo.path]: photo for photo in splits['val'] + splits['test']
        }
        shared = [key for key in train if key in held]
        names = [f'{train[key].path.name} and {held[key].path.name}' for key in shared]
        text = (
            '{} sources of photos are both in training and in validation or testing '
            '(copies, tiles or frames, by their names), so scores are too good'
        )
        return notes_on(text, names)


def letters_of(name: str) -> str:
    """Return the letters of a name."""
    return ''.join(filter(str.isalpha, name))


def find_sources(names: Iterable[str]) -> dict[str, str]:
    """Return the source of each of the plain stems of a folder's photos; a name of no
    mark is its own."""
    sources = with_originals({name: strip_marks(name) for name in names})
    stripped = {name: strip(AUGMENTED, source) for name, source in sources.items()}
    members: dict[str, set[str]] = defaultdict(set)
    for name, source in stripped.items():
        members[source].add(sources[name])
    sources = {
        name: stripped[name] if len(members[stripped[name]]) > 1 else source
        for name, source in sources.items()
    }
    return with_grids(sources)


def strip_marks(name: str) -> str:
    """Return a name without the marks that only tools write."""
    match = ROBOFLOW.fullmatch(name)
    if match:
        name = match[1]
        frame = ROBOFLOW_FRAME.fullmatch(name)
        name = frame[1] if frame else name
    match = AUGMENTOR.fullmatch(name)
    if match:
        name = match[1]
    for pattern in (FRAME, TILE):
        match = pattern.fullmatch(name)
        if match:
            name = next(group for group in match.groups() if group is not None)
    return name.rstrip('_- ')


def strip(pattern: re.Pattern, name: str) -> str:
    """Return a name without a mark, if it has that."""
    match = pattern.fullmatch(name)
    return match[1] if match else name


def with_originals(sources: dict[str, str]) -> dict[str, str]:
    """Return sources without words of a change, which may mean something else, such as
    a crop in a field: where the original lies beside the copy."""
    all_sources, result = {*sources.values()}, {}
    for name, source in sources.items():
        result[name] = source
        for pattern in (CHANGED, CHANGED_BEFORE):
            original = strip(pattern, source)
            if original != source and original in all_sources:
                result[name] = original
    return result


def with_grids(sources: dict[str, str]) -> dict[str, str]:
    """Return sources without two numbers at their end, where these are a whole grid."""
    places: dict[str, dict[str, tuple[int, int]]] = defaultdict(dict)
    for name, source in sources.items():
        match = PAIR.fullmatch(source)
        if match:
            places[match[1]][name] = int(match[2]), int(match[3])
    grids = {source for source, pairs in places.items() if is_grid(pairs.values())}
    return {**sources, **{name: source for source in grids for name in places[source]}}


def is_grid(pairs: Iterable[tuple[int, int]]) -> bool:
    """Return whether numbers of rows and columns, or places in pixels, are those of all
    tiles of one image."""
    pairs = {*pairs}
    rows, columns = ({pair[i] for pair in pairs} for i in (0, 1))
    if len(pairs) < 4 or min(len(rows), len(columns)) < 2:
        return False
    if pairs != {*product(rows, columns)}:
        return False
    return all(side == {*range(len(side))} for side in (rows, columns)) or all(
        0 in side and math.gcd(*side) >= LEAST_STEP for side in (rows, columns)
    )
