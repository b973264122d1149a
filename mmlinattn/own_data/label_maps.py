"""Label maps of photos: an id or a color for each pixel, or outlines to draw.

H and W are the height and width of a photo in pixels.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from .class_tables import color_words
from .labelings import MapContents, label_colors, label_ids
from .map_reader import (
    UNLABELED,
    AreColors,
    LabelMap,
    MapReader,
    OtherSize,
    Wanted,
    count_values,
    look_up,
)
from .records import Note, Photo, Splits, every_photo, notes_on

UNCLEAR, UPRIGHT, LYING = 'unclear', 'upright', 'lying'  # how maps fit rotated photos

__all__ = ['UNLABELED', 'LabelMaps', 'Wanted']


class LabelMaps:
    """The label maps of photos.

    Args:
        splits (dict[str, list[Photo]]): Photos by split.
        wanted (Wanted): What is known of the classes.

    Attributes:
        splits (dict[str, list[Photo]]): The photos whose maps can be read.
        classes (list[str]): Names in the order of labels.
        notes (list[Note]): On decisions.

    Raises:
        ValueError: If ids and names do not fit each other, colors have no names, or
            maps have another size than their photos.
    """

    def __init__(self, splits: Splits, wanted: Wanted) -> None:
        self.splits, self.wanted, self.notes = splits, wanted, list[Note]()
        rotates = self._choose_rotation()
        try:
            self.reader = MapReader(wanted, are_colors=False, rotates=rotates)
            self.maps = self._read_all()
        except AreColors:
            self.reader = MapReader(wanted, are_colors=True, rotates=rotates)
            self.maps = self._read_all()
        counts = self._count(every_photo(splits))
        contents = MapContents(self.maps, counts, wanted, self.notes)
        choose = label_colors if self.reader.are_colors else label_ids
        self.labeling = choose(contents)
        self.classes = self.labeling.classes
        self._note_held_back()

    def labels(self, photo: Photo) -> np.ndarray:
        """Return the label of each pixel of a photo, (H, W), uint8."""
        labels = look_up(self.labeling.table, self.reader.read(photo))
        if labels.shape == photo.size[::-1]:
            return labels
        return cv2.resize(labels, photo.size, interpolation=cv2.INTER_NEAREST_EXACT)

    def labels_key(self, photo: Photo) -> bytes:
        """Return what tells the label map of a photo from others."""
        return hashlib.md5(self.labels(photo).tobytes()).digest()

    def _count(self, photos: Sequence[Photo]) -> Counter[int]:
        """Return the pixels of each number in the maps of photos."""
        counts = Counter[int]()
        for path in {photo.map_path for photo in photos}:
            label_map = self.maps.get(path)
            if label_map:
                pairs = zip(label_map.values.tolist(), label_map.pixels.tolist())
                for value, pixels in pairs:
                    counts[value] += pixels
        return counts

    def _choose_rotation(self) -> bool:
        """Return whether maps that fit both ways are rotated as EXIF data rotate their
        photos: by an option, or as the maps that fit one way alone."""
        by_fit: dict[str, list[Path]] = defaultdict(list)
        for photo in {photo.path: photo for photo in every_photo(self.splits)}.values():
            if photo.orientation > 1 and photo.label_map:
                by_fit[_fit_of(photo, photo.label_map)].append(photo.label_map)
        unclear, upright, lying = (by_fit[fit] for fit in (UNCLEAR, UPRIGHT, LYING))
        rotates = self.wanted.rotates or bool(lying and not upright)
        rotated = lying + (unclear if rotates else [])
        text = '{} label maps are rotated as EXIF data rotate their photos'
        self.notes += notes_on(text, rotated)
        if unclear and not rotates and not upright:
            text = '{} photos are rotated by EXIF data, and their label maps fit both '
            text += 'ways: look at --show; --rotate-masks rotates the maps, too'
            self.notes += notes_on(text, unclear)
        return rotates

    def _note_held_back(self) -> None:
        """Note classes that occur in no map for training."""
        table = self.labeling.table
        trained = {int(table[value]) for value in self._count(self.splits['train'])}
        seen = {int(table[value]) for value in self._count(every_photo(self.splits))}
        for label in sorted(seen - trained - {UNLABELED}):
            text = f'{self.classes[label]} is in no label map for training'
            self.notes.append(Note(f'{text}, and is not learned'))

    def _read_all(self) -> dict[Path, LabelMap]:
        """Return the numbers of all maps; photos whose maps can't be read are left
        out."""
        maps, unread, resized = {}, [], []
        photos = {photo.map_path: photo for photo in every_photo(self.splits)}
        for path, photo in photos.items():
            try:
                numbers = self.reader.read(photo)
            except OtherSize as error:
                resized.append(f'{path}, {error}')
                continue
            except (MemoryError, OSError, SyntaxError):
                unread.append(path)
                continue
            wanted = photo.size[::-1]
            if numbers.shape != wanted:
                resized.append(f'{path}, {numbers.shape} instead of {wanted}')
            maps[path] = count_values(numbers)
        self._note_sizes(resized)
        self._leave_out(unread)
        return maps

    def _note_sizes(self, resized: list[str]) -> None:
        if not resized:
            return
        note = Note('{} label maps have another size than their photo', resized)
        if not self.wanted.resizes:
            raise ValueError(f'{note}: --resize-masks takes the nearest pixels')
        self.notes.append(Note(f'{note}: it resizes them'))

    def _leave_out(self, unread: Sequence[Path]) -> None:
        if not unread:
            return
        note = Note('ignored {} label maps that can not be read', unread)
        self.notes.append(note)
        for split, photos in self.splits.items():
            self.splits[split] = [
                photo for photo in photos if photo.map_path not in unread
            ]
        if not all(self.splits.values()):
            raise ValueError(str(note))

    def overview(self) -> Iterator[list[str]]:
        """Yield rows of a table: a class with its ids, and its share of each split."""
        table = self.labeling.table
        shares = np.zeros((len(self.splits), UNLABELED + 1))
        for row, photos in zip(shares, self.splits.values()):
            for photo in photos:
                label_map = self.maps[photo.map_path]
                np.add.at(row, table[label_map.values], label_map.pixels)
        shares /= shares.sum(1, keepdims=True)
        seen = np.unique(
            np.concatenate([label_map.values for label_map in self.maps.values()])
        )
        for label, name in [*enumerate(self.classes), (UNLABELED, 'no label')]:
            if label < UNLABELED or shares[:, label].any():
                numbers = seen[table[seen] == label][:3].tolist()
                words = color_words if self.reader.are_colors else str
                yield [
                    f'{name} ({" ".join(map(words, numbers))})',
                    *(f'{share:.1%}' for share in shares[:, label]),
                ]


def _fit_of(photo: Photo, path: Path) -> str:
    """Return how the map of a photo fits it, which EXIF data rotate: as it is seen, as
    the camera wrote it, or both; '' for another one."""
    try:
        with Image.open(path) as image:
            size, has_own = image.size, 'exif' in image.info
    except (OSError, SyntaxError, ValueError):
        return ''
    if has_own or photo.size not in (size, size[::-1]):
        return ''
    if photo.orientation < 5 or size[0] == size[1]:
        return UNCLEAR
    return UPRIGHT if size == photo.size else LYING
