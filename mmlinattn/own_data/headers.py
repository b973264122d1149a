"""What OpenCV, and so a training, makes of the files of photos."""

import hashlib
import io
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Optional

import cv2
import numpy as np
from PIL import Image
from rich.console import Console
from rich.progress import track

from .records import Note, Size

JPEG_BEGIN, JPEG_END = b'\xff\xd8', 0xD9
JPEG_SCAN = 0xDA  # compressed pixels follow
# in compressed pixels: a marker that neither stands for 255 nor restarts the decoder
MARKER = re.compile(rb'\xff+[^\x00\xff\xd0-\xd7]')
PNG_BEGIN = b'\x89PNG\r\n\x1a\n'
TIFF_BEGINS = (b'II*\0', b'MM\0*', b'II+\0', b'MM\0+')
ORIENTATION = 0x0112  # in EXIF data
ROTATIONS = range(2, 9)  # its values that rotate or mirror a photo
COUNTED = 10**6  # pixels of a photo, about, whose gray levels are counted


@dataclass(frozen=True)
class Depth:
    """A photo of more than three bands of 8 bits.

    Args:
        bits (int): Bits of a number in a band.
        bands (int): Bands of the file.
        levels (int): Different numbers that OpenCV leaves of a pixel's brightness.
        low (float): The 1st percentile of the file's numbers.
        high (float): The 99th percentile.
    """

    bits: int
    bands: int
    levels: int
    low: float
    high: float


@dataclass(frozen=True)
class Header:
    """A photo as OpenCV reads it.

    Args:
        size (tuple[int]): Width and height in pixels.
        orientation (int): That of EXIF data, by which OpenCV rotates it; 1 for none.
        ends_early (bool): The mark at the end of a JPEG or PNG file is missing.
        digest (bytes): The MD5 sum of the file.
        depth (Depth, optional): What OpenCV leaves of more than 8 bits or three bands.
        pages (int): Pictures in the file, of which OpenCV reads the first.
    """

    size: Size
    orientation: int
    ends_early: bool
    digest: bytes
    depth: Optional[Depth] = None
    pages: int = 1

    @property
    def is_turned(self) -> bool:
        """Whether OpenCV rotates it."""
        return self.orientation > 1


def read_headers(paths: Sequence[Path]) -> list[Optional[Header]]:
    """Return what :func:`read_header` says of photos, with progress for many."""
    Image.MAX_IMAGE_PIXELS = None  # large photos are no attacks
    with ThreadPoolExecutor() as pool:
        headers = pool.map(read_header, paths)
        if len(paths) > 1000:
            console = Console(stderr=True)
            return list(track(headers, 'photos', len(paths), console=console))
        return list(headers)


def read_header(path: Path) -> Optional[Header]:
    """Return the header of a photo; None if OpenCV does not read it from memory, as
    trainings do."""
    content = path.read_bytes()
    size, orientation, pages = None, 1, 1
    with suppress(OSError, SyntaxError, ValueError), Image.open(path) as image:
        orientation = orientation_of(image)
        width, height = image.size
        size = (height, width) if orientation > 4 else (width, height)
        pages = getattr(image, 'n_frames', 1) if image.format == 'TIFF' else 1
    # a part of the pixels where the size is known; thin photos have none of them
    pixels = decode(content, cv2.IMREAD_REDUCED_COLOR_8) if size else None
    if pixels is None:
        pixels = decode(content, cv2.IMREAD_COLOR)
    if pixels is None:
        return None
    height, width = pixels.shape[:2]
    return Header(
        size=size or (width, height),
        orientation=orientation,
        ends_early=ends_early(content),
        digest=hashlib.md5(content).digest(),
        depth=read_depth(content),
        pages=pages,
    )


def orientation_of(image: Image.Image) -> int:
    """Return the orientation in a photo's EXIF data, 1 without any; OpenCV does not
    read that of XMP, which Pillow takes for missing EXIF data."""
    exif = Image.Exif()
    if image.format == 'TIFF':
        exif = image.getexif()
    else:
        exif.load(image.info.get('exif', b''))
    orientation = exif.get(ORIENTATION, 1)
    is_read = orientation in ROTATIONS and opencv_rotates(image.format or '')
    return orientation if is_read else 1


@lru_cache
def opencv_rotates(kind: str) -> bool:
    """Return whether OpenCV, in its version here, rotates files of a kind by EXIF
    data."""
    data = Image.Exif()
    data[ORIENTATION] = 6
    with io.BytesIO() as file, suppress(KeyError, OSError, ValueError):
        Image.new('RGB', (16, 8)).save(file, kind, exif=data)
        pixels = decode(file.getvalue(), cv2.IMREAD_COLOR)
        return pixels is not None and pixels.shape[:2] == (16, 8)
    return False


def decode(content: bytes, flags: int) -> Optional[np.ndarray]:
    """Return the pixels of a file (H, W) or (H, W, bands); None if OpenCV can't read
    it."""
    if not content:
        return None
    try:
        return cv2.imdecode(np.frombuffer(content, np.uint8), flags)
    except cv2.error:
        return None


def ends_early(content: bytes) -> bool:
    """Return whether a JPEG or PNG file ends before its mark of an end.

    The mark is looked for as a decoder does, part by part: a film may be behind it, and
    a small picture with a mark of its own before it.
    """
    if content.startswith(JPEG_BEGIN):
        return not _jpeg_has_end(content)
    if content.startswith(PNG_BEGIN):
        return not _png_has_end(content)
    return False


def _jpeg_has_end(content: bytes) -> bool:
    place = len(JPEG_BEGIN)
    while True:
        marker = MARKER.search(content, place)
        if marker is None:
            return False
        code, place = content[marker.end() - 1], marker.end()
        if code == JPEG_END:
            return True
        if code != 0x01:  # which has no length
            place += int.from_bytes(content[place : place + 2], 'big')


def _png_has_end(content: bytes) -> bool:
    place = len(PNG_BEGIN)
    while place + 8 <= len(content):
        if content[place + 4 : place + 8] == b'IEND':
            return True
        # length, kind, data and a check sum
        place += 12 + int.from_bytes(content[place : place + 4], 'big')
    return False


def read_depth(content: bytes) -> Optional[Depth]:
    """Return what OpenCV leaves of a TIFF or PNG file; None for 8 bits in up to three
    bands.

    The fourth of a PNG file is its opacity, and does not count.
    """
    is_png = content.startswith(PNG_BEGIN)
    if is_png and content[24:25] != b'\x10':  # its bits are in the header
        return None
    if not is_png and not content.startswith(TIFF_BEGINS):
        return None
    whole = decode(content, cv2.IMREAD_UNCHANGED)
    seen = decode(content, cv2.IMREAD_COLOR)
    if whole is None or seen is None:
        return None
    bits, bands = 8 * whole.dtype.itemsize, whole[0, 0].size
    bands = min(bands, 3) if is_png else bands
    if bits == 8 and bands < 4:
        return None
    step = max(1, round((whole.shape[0] * whole.shape[1] / COUNTED) ** 0.5))
    low, high = np.percentile(whole[::step, ::step], (1, 99))
    seen = seen[::step, ::step]
    levels = max(len(np.unique(band)) for band in np.moveaxis(seen, -1, 0))
    return Depth(bits, bands, levels, float(low), float(high))


def depth_notes(paths: Sequence[Path], headers: Sequence[Header]) -> list[Note]:
    """Return notes on photos of more bits, bands or pages than a training sees."""
    kinds: dict[tuple[int, int], list[tuple[Path, Depth]]] = {}
    for path, header in zip(paths, headers):
        if header.depth:
            kind = header.depth.bits, max(header.depth.bands, 3)
            kinds.setdefault(kind, []).append((path, header.depth))
    notes = [_depth_note(*kind, photos) for kind, photos in sorted(kinds.items())]
    stacks = [path for path, header in zip(paths, headers) if header.pages > 1]
    if stacks:
        text = '{} photos have several pages, and only the first is read'
        notes.append(Note(text, stacks))
    return notes


def _depth_note(bits: int, bands: int, photos: list[tuple[Path, Depth]]) -> Note:
    """Return what the photos have, what of it is read, and what to do."""
    least = min(depth.levels for _, depth in photos)
    most = max(depth.levels for _, depth in photos)
    low = min(depth.low for _, depth in photos)
    high = max(depth.high for _, depth in photos)
    what, seen = f'{bits} bits', 'the upper 8 bits' if bits == 16 else '8 bits'
    if bands > 3:
        what = f'{bands} bands of {bits} bits'
        seen = f'{seen} of three bands' if bits > 8 else 'three bands'
    levels = f'{most} gray levels are'
    if least < most:
        levels = f'{least} to {levels}'
    return Note(
        f'{{}} photos have {what}, and OpenCV, with which it trains, reads {seen}: '
        f'{levels} left; if these are few, write files of up to three bands of 8 bits, '
        f'in which the range of the numbers, here {low:.5g} to {high:.5g}, is 0 to 255',
        [path for path, _ in photos],
    )
