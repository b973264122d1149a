"""Label maps of photos: an id or a color for each pixel, or outlines to draw.

H and W are the height and width of a photo in pixels.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

import cv2
import numpy as np
from PIL import Image

from .class_tables import color_words, read_colors, read_id_names
from .folder import Folder
from .records import Note, Photo, Splits, every_photo
from .words import JPEG_ENDINGS

UNLABELED = 255
MAX_ID = 2**16 - 1  # which means no label, as 255 does
COLORS = 2**24
GRAYS = 10  # more of them in black and white masks are blurred borders
SHOWN_IDS, SHOWN_COLORS = 50, 30  # in an error


class AreColors(Exception):
    """Ids turn out to be colors, or palettes of different colors."""


@dataclass(frozen=True)
class LabelMap:
    """The numbers that occur in a label map, (K,), and their pixels, (K,)."""

    values: np.ndarray
    pixels: np.ndarray


@dataclass(frozen=True)
class Wanted:
    """What is known of the classes before label maps are read.

    Args:
        names (list[str], optional): In the order of labels.
        ignore (set[int]): Ids that are no label, besides 255.
        colors (dict[int, str]): Names by color.
        id_names (dict[int, str]): Names by id, of a table.
        is_drawn (bool): Maps are drawn from outlines of these names.
        resizes (bool): Maps of another size than their photos are resized.
    """

    names: Optional[Sequence[str]] = None
    ignore: frozenset[int] = frozenset()
    colors: Mapping[int, str] = field(default_factory=dict)
    id_names: Mapping[int, str] = field(default_factory=dict)
    is_drawn: bool = False
    resizes: bool = False

    @classmethod
    def from_folder(cls, folder: Folder, drawn: Optional[list[str]]) -> 'Wanted':
        """What options and tables in a folder say; ``drawn`` are the classes of
        outlines, if label maps are drawn."""
        options, tables = folder.options, folder.files['.csv']
        return cls(
            drawn or options.classes,
            frozenset(options.ignore),
            read_colors(options.colors, folder.files['.txt'] + tables),
            {} if options.classes or drawn else read_id_names(tables),
            bool(drawn),
            options.resize_masks,
        )


class MapReader:
    """Reads label maps; ``are_colors`` says what the numbers of pixels are."""

    def __init__(self, wanted: Wanted, are_colors: bool) -> None:
        self.wanted, self.are_colors = wanted, are_colors
        self.palette: dict[int, list[int]] = {}

    def read(self, photo: Photo) -> np.ndarray:
        """The numbers of a photo's pixels, (H, W), int.

        Raises:
            AreColors: If ids turn out to be colors.
            OSError, SyntaxError: If the file can't be read.
            ValueError: If numbers can be no ids.
        """
        if photo.is_drawn:
            return self.draw(photo)
        with Image.open(photo.map_path) as image:
            if self.are_colors:
                return np.array(image.convert('RGB')).astype(int) @ [2**16, 2**8, 1]
            if len(image.getbands()) > 1:
                return self._gray(np.array(image.convert('RGB')))
            ids = np.array(image)
            if image.mode == 'P':
                self._check_palette(ids, image.getpalette('RGB') or [])
        return self._valid(ids, photo.map_path)

    def draw(self, photo: Photo) -> np.ndarray:
        """Ids by outlines, (H, W), int, small objects above large ones."""
        ids = np.zeros(photo.size[::-1], int)
        names = self.wanted.names or ()
        for item in sorted(photo.objects, key=lambda item: -item.area):
            label = names.index(item.name) if item.name in names else 0
            if item.outline:
                mask = item.outline.mask(photo.size) > 0
                ids[mask] = UNLABELED if item.is_crowd else label
        return ids

    def _gray(self, pixels: np.ndarray) -> np.ndarray:
        """Ids of three bands that are the same."""
        if (pixels != pixels[..., :1]).any():
            raise AreColors
        return pixels[..., 0].astype(int)

    def _check_palette(self, ids: np.ndarray, palette: list[int]) -> None:
        """Ids are numbers of a palette's colors, unless files have different ones."""
        for i in np.unique(ids).tolist():
            color = palette[3 * i : 3 * i + 3]
            if self.wanted.colors or self.palette.setdefault(i, color) != color:
                raise AreColors

    def _valid(self, ids: np.ndarray, path: Path) -> np.ndarray:
        """Ids without those that mean no label."""
        for number in self.wanted.ignore:
            ids = np.where(ids == number, UNLABELED, ids) if number < 0 else ids
        if ids.dtype.kind != 'f':
            ids = ids.astype(int)
        wrong = ids[(ids < 0) | (ids > MAX_ID) | (ids % 1 != 0)]
        if wrong.size:
            text = f'{path}: it has {wrong[0]:g}, and no ids from 0 to {MAX_ID}'
            if wrong[0] < 0:
                text += f'; --ignore {wrong[0]:g} takes it for no label'
            raise ValueError(text)
        ids = ids.astype(int)
        ids[ids == MAX_ID] = UNLABELED
        return ids


def count_values(numbers: np.ndarray) -> LabelMap:
    """The numbers that occur in pixels."""
    if numbers.max(initial=0) > MAX_ID:
        return LabelMap(*np.unique(numbers, return_counts=True))
    counts = np.bincount(numbers.ravel())
    values = counts.nonzero()[0]
    return LabelMap(values, counts[values])


@dataclass(frozen=True)
class Labeling:
    """The label of each id or color, and the names of labels in their order."""

    classes: list[str]
    table: np.ndarray

    @classmethod
    def of(cls, classes: Sequence[str], labels: Mapping[int, int]) -> 'Labeling':
        """A labeling by a label for each id or color; others have none."""
        table = np.full(COLORS, UNLABELED, np.uint8)
        table[list(labels)] = list(labels.values())
        return cls(list(classes), table)


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
        try:
            self.reader = MapReader(wanted, are_colors=False)
            self.maps = self._read_all()
        except AreColors:
            self.reader = MapReader(wanted, are_colors=True)
            self.maps = self._read_all()
        counts = Counter[int]()
        for label_map in self.maps.values():
            pairs = zip(label_map.values.tolist(), label_map.pixels.tolist())
            for value, pixels in pairs:
                counts[value] += pixels
        if self.reader.are_colors:
            self.labeling = self._label_colors(counts)
        else:
            self.labeling = self._label_ids(counts)
        self.classes = self.labeling.classes

    def labels(self, photo: Photo) -> np.ndarray:
        """The label of each pixel of a photo, (H, W), uint8."""
        labels = self.labeling.table[self.reader.read(photo)]
        return cv2.resize(labels, photo.size, interpolation=cv2.INTER_NEAREST_EXACT)

    def _read_all(self) -> dict[Path, LabelMap]:
        """The numbers of all maps; photos whose maps can't be read are left out."""
        maps, unread, resized = {}, [], []
        photos = {photo.map_path: photo for photo in every_photo(self.splits)}
        for path, photo in photos.items():
            try:
                numbers = self.reader.read(photo)
            except (OSError, SyntaxError):
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
        note = Note('left out {} label maps that can not be read', unread)
        self.notes.append(note)
        for split, photos in self.splits.items():
            self.splits[split] = [
                photo for photo in photos if photo.map_path not in unread
            ]
        if not all(self.splits.values()):
            raise ValueError(str(note))

    def _label_ids(self, counts: Counter[int]) -> Labeling:
        """The labels of ids: of names for 0, 1, 2 and so on, or for all that occur."""
        names = self.wanted.names
        if not names and has_blurred_borders(counts):
            return self._halve(counts)
        if not self.wanted.is_drawn:
            refuse_jpeg(self.maps)
        ids = self._used_ids(counts)
        if self.wanted.id_names:
            return self._label_named_ids(ids)
        if not names:
            text = 'label maps have no names: give them with --classes'
            self.notes.append(Note(text))
            names = [f'class {i}' for i in sorted(ids)]
        order = sorted(with_missing_ids(ids, len(names), self.wanted.ignore))
        if not order or len(order) != len(names) or len(order) > UNLABELED:
            raise ValueError(describe_ids(counts, order, self.wanted.names or ()))
        return Labeling.of(names, {number: i for i, number in enumerate(order)})

    def _used_ids(self, counts: Counter[int]) -> set[int]:
        """Ids that are labels: 255 is one only where 0 is the only other id."""
        ids = set(counts) - self.wanted.ignore
        if ids != {0, UNLABELED}:
            return ids - {UNLABELED}
        text = 'label maps have only 0 and 255, which are two classes'
        self.notes.append(Note(f'{text}; with --ignore 255, 255 has no label'))
        return ids

    def _label_named_ids(self, ids: set[int]) -> Labeling:
        """Labels in the order of ids, by a table's names."""
        unnamed = sorted(ids - self.wanted.id_names.keys())
        if unnamed:
            raise ValueError(
                f'label maps have the id {unnamed[0]}, which no _classes.csv names: '
                f'--ignore {unnamed[0]} takes it for no label'
            )
        order = sorted(set(self.wanted.id_names) - self.wanted.ignore - {UNLABELED})
        labels = {number: label for label, number in enumerate(order)}
        return Labeling.of([self.wanted.id_names[i] for i in order], labels)

    def _halve(self, counts: Counter[int]) -> Labeling:
        """Two classes of grays."""
        number = len(set(counts) - self.wanted.ignore)
        self.notes.append(
            Note(
                f'label maps have {number} grays, as of JPEG or of smoothed masks: '
                'up to 127 they are class 0, above class 255'
            )
        )
        labels = {gray: int(gray > 127) for gray in range(256)}
        return Labeling.of(['class 0', 'class 255'], labels)

    def _label_colors(self, counts: Counter[int]) -> Labeling:
        """The labels of colors that have a name."""
        colors, total = self.wanted.colors, sum(counts.values())
        order = sorted(counts, key=lambda color: (-counts[color], color))
        if not colors:
            shares = []
            for color in order[:SHOWN_COLORS]:
                shares.append(f'{color_words(color)} ({counts[color] / total:.1%})')
            raise ValueError(
                f'label maps have colors, {"; ".join(shares)}: name them in the order '
                'of labels, --colors road=128,64,128 sky=70,130,180, or put a table '
                'with such lines into the folder, colors.txt'
            )
        other = sum(counts[color] for color in order if color not in colors) / total
        text = f'{other:.1%} of label maps have colors of no class'
        if other > 0.5:
            raise ValueError(f'{text}, such as {color_words(order[0])}')
        if other:
            self.notes.append(Note(f'{text}, and no label'))
        classes = list(self.wanted.names or dict.fromkeys(colors.values()))
        named = {code: name for code, name in colors.items() if name in classes}
        labels = {code: classes.index(name) for code, name in named.items()}
        return Labeling.of(classes, labels)

    def overview(self) -> Iterator[list[str]]:
        """Rows of a table: a class with its ids, and its share of each split."""
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


def has_blurred_borders(counts: Counter[int]) -> bool:
    """Whether numbers are black and white, with borders that JPEG or a resizing has
    blurred."""
    ends = sum(counts[gray] for gray in (*range(64), *range(192, 256)))
    grays = sum(gray in counts for gray in range(193, 255))
    is_8_bit = max(counts, default=0) < 256
    return is_8_bit and grays > GRAYS and ends > 0.9 * sum(counts.values())


def refuse_jpeg(paths: Iterable[Path]) -> None:
    """Ids in JPEG are not exact.

    Raises:
        ValueError: If there are such files.
    """
    lossy = sorted(path for path in paths if path.suffix.lower() in JPEG_ENDINGS)
    if lossy:
        raise ValueError(f'{lossy[0]}: a label map in JPEG has no exact ids')


def with_missing_ids(ids: set[int], num_names: int, ignore: Iterable[int]) -> set[int]:
    """The ids of names: the first ones that are not ignored if those that occur are
    among them, or those that occur."""
    ignore, first, number = set(ignore), set[int](), 0
    while len(first) < num_names:
        if number not in ignore:
            first.add(number)
        number += 1
    return first if ids <= first else ids


def describe_ids(counts: Counter[int], ids: list[int], names: Sequence[str]) -> str:
    """An error of ids whose number is not that of names."""
    total = sum(counts.values())
    shares = [f'{i} ({counts[i] / total:.1%})' for i in ids[:SHOWN_IDS]]
    return (
        f'label maps have the ids {", ".join(shares)}, and --classes {len(names)} '
        'names: --ignore takes ids that are no label'
    )
