"""Photos and their label maps: in folders of label maps, or beside the photos."""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Optional

from ..folder import PHOTO, Folder
from ..matching import PhotoIndex
from ..records import Match, Note, Reading, notes_on
from ..words import (
    COLOR_WORDS,
    JPEG_ENDINGS,
    LABEL_MAP_FILE_WORDS,
    LABEL_MAP_WORDS,
    OBJECT_WORDS,
    PHOTO_WORDS,
    has_word,
    plain,
    words_of,
)
from . import class_masks
from .objects import read_objects

SEPARATORS = re.compile('[ _.-]')
# words beside that of a label map, as in "labelTrainIds"
QUALIFIERS = COLOR_WORDS | OBJECT_WORDS
QUALIFIERS |= {'class', 'classes', 'fine', 'id', 'ids', 'map', 'maps', 'png', 'train'}
INSTANCE_WORDS = frozenset(('instance', 'instances'))
EXAMPLES = 3  # names of photos in an error


def read_label_maps(folder: Folder) -> Reading:
    """Return photos and their label maps, or photos with outlines from which they are
    drawn.

    Raises:
        ValueError: If label maps have no photos.
    """
    notes: list[Note] = []
    maps = find_label_maps(folder, notes)
    if not folder.options.masks:
        of_labelme = folder.labelme_masks()
        maps = [path for path in maps if path not in of_labelme]
    if not maps or (folder.options.labels and not folder.options.masks):
        reading = read_objects(folder)
        reading.notes = notes + reading.notes
        return reading
    if not folder.options.masks:
        maps, of_objects = _without_objects(maps)
    else:
        of_objects = []
    index = PhotoIndex(folder, find_photos(folder, {*maps, *of_objects}))
    matches = pair(index, maps)
    check_pairs(folder, index, matches)
    layered = class_masks.read_class_masks(matches, QUALIFIERS)
    if layered:
        notes += class_masks.notes_of(layered)
        masks = {match.source for match in matches}
        return Reading(layered, left_out=masks.union(of_objects), notes=notes)
    matches, beside = _without_beside(matches)
    if not folder.options.masks:
        _refuse_instances(matches)
    left_out = sorted(of_objects + beside)
    notes += notes_on('ignored {} label maps of objects or colors', left_out)
    return Reading(matches, left_out=set(left_out), notes=notes)


def find_label_maps(folder: Folder, notes: list[Note]) -> list[Path]:
    """Return pictures that are label maps by the option ``--masks``, by their folders,
    by their own names, or as PNG files beside JPEG files, which is noted."""
    pictures = folder.files[PHOTO]
    if folder.options.masks:
        return folder.select(pictures, 'masks')
    maps = maps_by_folder(folder)
    maps = maps or [path for path in pictures if is_map_name(path.stem)]
    if not maps:
        maps = png_beside_jpeg(pictures)
        text = 'it takes {} PNG files beside JPEG files for their label maps'
        notes += notes_on(text, maps)
    return maps


def find_photos(folder: Folder, maps: set[Path]) -> list[Path]:
    """Return pictures that are no label maps; those in other folders of label maps are
    none, unless ``--images`` names them or there are no others."""
    pictures = folder.select(folder.files[PHOTO], 'images')
    photos = [path for path in pictures if path not in maps]
    if folder.options.images:
        return photos
    others = set(maps_by_folder(folder))
    return [path for path in photos if path not in others] or photos


def maps_by_folder(folder: Folder) -> list[Path]:
    """Return pictures in folders of label maps: by the last part of a folder's name
    that says what it has, or by any part if this takes none or all."""
    pictures, maps = folder.files[PHOTO], list[Path]()
    for is_map_folder in (has_maps, partial(has_word, words=LABEL_MAP_WORDS)):
        maps = [path for path in pictures if is_map_folder(folder.below_base(path))]
        if maps and len(maps) < len(pictures):
            break
    return maps


def png_beside_jpeg(pictures: list[Path]) -> list[Path]:
    """PNG files that have the name of a JPEG file, or begin with it."""
    jpeg = {path.stem for path in pictures if path.suffix.lower() in JPEG_ENDINGS}
    maps = []
    for path in pictures:
        names = photo_names(path.stem)
        if path.suffix.lower() == '.png' and not jpeg.isdisjoint(names):
            maps.append(path)
    return maps


def has_maps(folder: str) -> bool:
    """Return whether a folder has label maps: the last of its parts that says so
    decides, as of masks/images and images/masks."""
    for part in reversed(Path(folder).parts):
        if has_word(part, LABEL_MAP_WORDS):
            return True
        if has_word(part, PHOTO_WORDS):
            return False
    return False


def is_map_name(stem: str) -> bool:
    """Return whether the first or last of several words is one for label maps."""
    words = SEPARATORS.split(stem)
    return len(words) > 1 and (_means_map(words[0]) or _means_map(words[-1]))


def _means_map(word: str) -> bool:
    parts = set(words_of(word))
    known = LABEL_MAP_FILE_WORDS | QUALIFIERS
    return bool(parts & LABEL_MAP_FILE_WORDS) and parts <= known


def pair(index: PhotoIndex, maps: list[Path]) -> list[Match]:
    """Return a match of each label map; those without a photo have no path."""
    short_names = ShortNames(index.photos)
    shared = _shared_words(maps)
    matches = []
    for path in maps:
        names = list(photo_names(path.stem, shared[path.parent]))
        name = next((name for name in names if index.by_stem.get(plain(name))), None)
        name = name or short_names.find(names) or path.stem
        matches.append(index.match(name, path.parent, source=path, label_map=path))
    return matches


def photo_names(stem: str, shared: Container[str] = ()) -> Iterator[str]:
    """Yield names that the photo of a label map may have, the likeliest first."""
    words = SEPARATORS.split(stem)
    for end in range(len(words), 0, -1):
        yield stem[: len('_'.join(words[:end]))]
    if len(words) > 1 and (_means_map(words[0]) or words[0] in shared):
        rest = stem[len(words[0]) + 1 :]
        yield rest
        yield from (f'{word}_{rest}' for word in ('image', 'img', 'photo'))


class ShortNames:
    """Names of photos without a word of their own, such as 001 of 001_image.png.

    The word is the first or last one; it means a photo, or all photos of a folder have
    it.
    """

    def __init__(self, photos: list[Path]) -> None:
        self.stems: dict[str, set[str]] = defaultdict(set)
        shared = _shared_words(photos)
        for path in photos:
            words = SEPARATORS.split(path.stem)
            for word, rest in _rests(path.stem, words):
                is_own = not PHOTO_WORDS.isdisjoint(words_of(word))
                if is_own or word in shared[path.parent]:
                    self.stems[plain(rest)].add(path.stem)

    def find(self, names: Iterable[str]) -> Optional[str]:
        """Return the name of the photo with the first of these short names, if it is
        one."""
        for name in names:
            stems = self.stems.get(plain(name), set())
            if stems:
                return next(iter(stems)) if len(stems) == 1 else None
        return None


def _rests(stem: str, words: list[str]) -> list[tuple[str, str]]:
    """Return the last and the first word of several, and a name without them."""
    if len(words) < 2:
        return []
    last, first = words[-1], words[0]
    return [(last, stem[: -len(last) - 1]), (first, stem[len(first) + 1 :])]


def _shared_words(paths: list[Path]) -> dict[Path, set[str]]:
    """By folder, the first and last words that all of its pictures have."""
    shared: dict[Path, set[str]] = {}
    totals = Counter(path.parent for path in paths)
    for path in paths:
        words = SEPARATORS.split(path.stem)
        ends = {words[0], words[-1]} if len(words) > 1 else set()
        shared[path.parent] = shared.get(path.parent, ends) & ends
    for folder, ends in shared.items():
        is_alone = totals[folder] == 1
        shared[folder] = (
            set() if is_alone else {end for end in ends if not end.isdigit()}
        )
    return shared


def check_pairs(folder: Folder, index: PhotoIndex, matches: list[Match]) -> None:
    """Refuse label maps without photos.

    Raises:
        ValueError: It names one, and what photos are called.
    """
    alone = [match.source for match in matches if match.path is None]
    if not alone:
        return
    text = (
        f'{len(alone)} of {len(matches)} label maps have no photo of their name, such '
    )
    text += f'as {alone[0].relative_to(folder.root)}'
    names = [str(photo.relative_to(folder.root)) for photo in index.photos[:EXAMPLES]]
    called = f'photos are called {", ".join(names)}' if names else 'no photos are left'
    raise ValueError(f'{text}; {called}: --images and --masks name the folders of each')


def _without_objects(maps: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return label maps that are not in folders of objects, whose numbers are no
    classes, and those that are.

    Raises:
        ValueError: If all are.
    """
    parts: dict[bool, list[Path]] = {False: [], True: []}
    for path in maps:
        parts[has_word(path.parent.name, OBJECT_WORDS)].append(path)
    if not parts[False]:
        raise _of_objects(maps[0], maps[0].parent.name)
    return parts[False], parts[True]


def _of_objects(path: Path, pattern: str) -> ValueError:
    """Return the error of a label map of objects; ``pattern`` is for ``--masks``."""
    return ValueError(
        f'label maps such as {path} seem to have numbers of objects, not of classes: '
        f'--masks {pattern} takes them as they are'
    )


def _refuse_instances(matches: list[Match]) -> None:
    """Refuse label maps of instances, by a word that their photos do not have.

    Raises:
        ValueError: It names one.
    """
    for match in matches:
        photo = match.path.stem if match.path else ''
        own = set(words_of(match.source.stem)).difference(words_of(photo))
        if own & INSTANCE_WORDS:
            word = SEPARATORS.split(match.source.stem)[-1]
            raise _of_objects(match.source, f'*{word}{match.source.suffix}')


def _without_beside(matches: list[Match]) -> tuple[list[Match], list[Path]]:
    """Match without label maps of objects or colors that lie beside another one of the
    same photo, and these maps."""
    words = OBJECT_WORDS | COLOR_WORDS
    plain_ones = {
        match.path for match in matches if not has_word(match.source.stem, words)
    }
    matched, left_out = [], []
    for match in matches:
        is_beside = match.path in plain_ones and has_word(match.source.stem, words)
        if is_beside:
            left_out.append(match.source)
        else:
            matched.append(match)
    return matched, left_out
