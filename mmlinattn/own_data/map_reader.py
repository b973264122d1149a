"""The numbers of label maps' pixels: ids, colors, or outlines that are drawn.

H and W are the height and width of a photo in pixels. Maps may be as large as photos of
satellites: numbers have 8 or 16 bits, 32 for colors, and are counted in parts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

import cv2
import numpy as np
from PIL import Image, ImageOps

from .class_tables import NameTable, read_colors, read_id_names, read_name_tables
from .folder import Folder
from .records import Photo, Size

UNLABELED = 255
MAX_ID = 2**16 - 1  # which means no label, as 255 does
LARGEST = 2**30  # pixels of a picture that OpenCV reads
PART = 2**22  # pixels that are counted at once
TABLES = ('.txt', '.csv', '.tsv', '.json', '.yaml', '.yml', '.names')
# pixels around one of a blurred border: of few grays, as of a drawing, and of many
NEAR, FAR, MANY_GRAYS = np.ones((5, 5), np.uint8), np.ones((9, 9), np.uint8), 8
# how Pillow calls what OpenCV does to a photo, by the orientation in EXIF data
ROTATIONS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class AreColors(Exception):
    """Ids turn out to be colors, or palettes of different colors."""


class OtherSize(Exception):
    """A label map has another size than its photo."""


@dataclass(frozen=True)
class LabelMap:
    """The numbers that occur in a label map.

    Args:
        values (ndarray): The numbers, (K,).
        pixels (ndarray): How many pixels have each, (K,).
        grays (int): Pixels that are neither 0 nor 255.
        between (int): Those of them with both 0 and 255 near them.
    """

    values: np.ndarray
    pixels: np.ndarray
    grays: int = 0
    between: int = 0


@dataclass(frozen=True)
class Wanted:
    """What is known of the classes before label maps are read.

    Args:
        names (list[str], optional): In the order of labels.
        ignore (set[int]): Ids that are no label, besides 255.
        colors (dict[int, str]): Names by color.
        id_names (dict[int, str]): Names by id, of Roboflow's tables.
        tables (list[NameTable]): Other tables of names by id.
        is_drawn (bool): Maps are drawn from outlines of these names.
        resizes (bool): Maps of another size than their photos are resized.
        rotates (bool): Maps are rotated as EXIF data rotate their photos.
        uses_255 (bool): Id 255 is a label.
        uses_void (bool): An option names the colors, so that each is a label.
    """

    names: Optional[Sequence[str]] = None
    ignore: frozenset[int] = frozenset()
    colors: Mapping[int, str] = field(default_factory=dict)
    id_names: Mapping[int, str] = field(default_factory=dict)
    tables: Sequence[NameTable] = ()
    is_drawn: bool = False
    resizes: bool = False
    rotates: bool = False
    uses_255: bool = False
    uses_void: bool = False

    @classmethod
    def from_folder(cls, folder: Folder, drawn: Optional[list[str]]) -> 'Wanted':
        """Return what options and tables in a folder say; ``drawn`` are the classes of
        outlines, if label maps are drawn."""
        options, tables = folder.options, folder.files['.csv']
        has_names = bool(options.classes or drawn)
        paths = [path for ending in TABLES for path in folder.files[ending]]
        return cls(
            names=drawn or options.classes,
            ignore=frozenset(options.ignore),
            colors=read_colors(
                options.colors, folder.files['.txt'] + tables + folder.files['.json']
            ),
            id_names={} if has_names else read_id_names(tables),
            tables=[] if has_names else read_name_tables(paths),
            is_drawn=bool(drawn),
            resizes=options.resize_masks,
            rotates=options.rotate_masks,
            uses_255=options.use_255,
            uses_void=bool(options.colors),
        )


class MapReader:
    """Reads label maps; ``are_colors`` says what the numbers of pixels are, and
    ``rotates`` whether maps that fit their photos both ways are rotated as EXIF data
    rotate these."""

    def __init__(self, wanted: Wanted, are_colors: bool, rotates: bool) -> None:
        self.wanted, self.are_colors, self.rotates = wanted, are_colors, rotates
        self.palette: dict[int, list[int]] = {}

    def read(self, photo: Photo) -> np.ndarray:
        """Return the numbers of a photo's pixels, (H, W), uint8, uint16 or, of colors,
        uint32.

        Raises:
            AreColors: If ids turn out to be colors.
            OSError, SyntaxError: If the file can't be read.
            OtherSize: If the size is not the photo's, and maps are not resized.
            ValueError: If numbers can be no ids.
        """
        if photo.is_drawn:
            return self.draw(photo)
        with Image.open(photo.map_path) as file:
            # before its pixels take memory
            if not self.wanted.resizes and not fits(file.size, photo):
                raise OtherSize(f'{file.size[::-1]} instead of {photo.size[::-1]}')
            if file.size[0] * file.size[1] > LARGEST:
                raise OSError(f'it has {file.size[0]} x {file.size[1]} pixels')
            image = self._upright(file, photo)
            if image.size != photo.size and not self.wanted.resizes:
                raise OtherSize(f'{image.size[::-1]} instead of {photo.size[::-1]}')
            numbers = self._numbers(image)
        return numbers if self.are_colors else self._valid(numbers, photo.map_path)

    def _upright(self, file: Image.Image, photo: Photo) -> Image.Image:
        """Return the map as the photo is seen: rotated by its own EXIF data, or by the
        photo's if it is the map of the pixels that the camera wrote."""
        if 'exif' in file.info:
            return ImageOps.exif_transpose(file)
        if photo.orientation not in ROTATIONS:
            return file
        rotated = file.size[::-1] if photo.orientation > 4 else file.size
        rotates = self.rotates if rotated == file.size else rotated == photo.size
        return file.transpose(ROTATIONS[photo.orientation]) if rotates else file

    def _numbers(self, image: Image.Image) -> np.ndarray:
        """Return colors, or ids that may be wrong."""
        if self.are_colors:
            return color_codes(np.array(image.convert('RGB')))
        if len(image.getbands()) > 1:
            pixels = np.array(image.convert('RGB'))
            if (pixels != pixels[..., :1]).any():
                raise AreColors
            return np.ascontiguousarray(pixels[..., 0])
        ids = np.array(image)
        if image.mode == 'P':
            self._check_palette(ids, image.getpalette('RGB') or [])
        return ids

    def draw(self, photo: Photo) -> np.ndarray:
        """Return ids by outlines, (H, W), uint16, small objects above large ones."""
        ids = np.zeros(photo.size[::-1], np.uint16)
        names = self.wanted.names or ()
        for item in sorted(photo.objects, key=lambda item: -item.area):
            label = names.index(item.name) if item.name in names else 0
            if item.outline:
                mask = item.outline.mask(photo.size) > 0
                ids[mask] = UNLABELED if item.is_crowd else label
        return ids

    def _check_palette(self, ids: np.ndarray, palette: list[int]) -> None:
        """Ids are numbers of a palette's colors, unless files have different ones."""
        for i in count_values(ids).values.tolist():
            color = palette[3 * i : 3 * i + 3]
            if self.wanted.colors or self.palette.setdefault(i, color) != color:
                raise AreColors

    def _valid(self, ids: np.ndarray, path: Path) -> np.ndarray:
        """Return ids without those that mean no label."""
        if ids.dtype == bool:
            return np.minimum(ids.view(np.uint8), 1)  # Pillow's True is 255
        if ids.dtype == np.uint8:
            return ids
        if ids.dtype != np.uint16:
            for number in self.wanted.ignore:
                ids = np.where(ids == number, UNLABELED, ids) if number < 0 else ids
            wrong = ids[(ids < 0) | (ids > MAX_ID) | (ids % 1 != 0)]
            if wrong.size:
                text = f'{path}: it has {wrong[0]:g}, and no ids from 0 to {MAX_ID}'
                if wrong[0] < 0:
                    text += f'; --ignore {wrong[0]:g} takes it for no label'
                raise ValueError(text)
            ids = ids.astype(np.uint16)
        ids[ids == MAX_ID] = UNLABELED
        return ids


def fits(size: Size, photo: Photo) -> bool:
    """Return whether a map may be that of a photo, as it is seen or as the camera wrote
    it."""
    return photo.size in (size, size[::-1] if photo.orientation > 4 else size)


def color_codes(pixels: np.ndarray) -> np.ndarray:
    """Return colors (H, W, 3), uint8, as one number each, uint32."""
    codes = pixels[..., 0].astype(np.uint32)
    for band in (1, 2):
        codes <<= 8
        codes |= pixels[..., band]
    return codes


def parts_of(numbers: np.ndarray) -> Iterator[slice]:
    """Yield rows of pixels (H, W), some at once."""
    step = max(1, PART // max(1, numbers.shape[1]))
    for first in range(0, len(numbers), step):
        yield slice(first, first + step)


def count_values(numbers: np.ndarray) -> LabelMap:
    """Return the numbers that occur in pixels (H, W)."""
    counts: dict[int, int] = {}
    for rows in parts_of(numbers):
        if numbers.dtype.itemsize > 2:
            values, pixels = np.unique(numbers[rows], return_counts=True)
        else:
            pixels = np.bincount(numbers[rows].ravel())
            values = pixels.nonzero()[0]
            pixels = pixels[values]
        for value, count in zip(values.tolist(), pixels.tolist()):
            counts[value] = counts.get(value, 0) + count
    order = sorted(counts)
    values, pixels = np.array(order, int), np.array([counts[i] for i in order], int)
    black, white = counts.get(0), counts.get(UNLABELED)
    is_gray = black and white and len(order) > 2 and order[-1] == UNLABELED
    if not is_gray or numbers.dtype != np.uint8:
        return LabelMap(values, pixels)
    grays = (numbers > 0) & (numbers < UNLABELED)
    window = FAR if len(order) > 2 + MANY_GRAYS else NEAR
    near = cv2.erode(numbers, window) == 0
    near &= cv2.dilate(numbers, window) == UNLABELED
    return LabelMap(values, pixels, int(grays.sum()), int((near & grays).sum()))


def look_up(table: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return the entries of a table (N,), uint8, for numbers (H, W)."""
    labels = np.empty(numbers.shape, np.uint8)
    for rows in parts_of(numbers):
        labels[rows] = table[numbers[rows]]
    return labels
