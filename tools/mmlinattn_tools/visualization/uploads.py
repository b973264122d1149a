"""Pictures from strangers: what they are is found out before they are decoded."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageOps, UnidentifiedImageError

FORMATS = ('PNG', 'JPEG', 'WEBP', 'BMP')
SMALLEST = 32  # pixels, the least that a backbone takes
LARGEST_RATIO = 10  # of the longer side to the shorter one


class Limits(NamedTuple):
    """The largest picture that is taken.

    Attributes:
        megapixels (float): Width times height, in millions.
        megabytes (float): Size of the file, in units of 10^6 bytes.
    """

    megapixels: float = 25.0
    megabytes: float = 30.0

    def __str__(self) -> str:
        return (
            f'{", ".join(FORMATS[:-1])} or {FORMATS[-1]}, up to {self.megapixels:g} '
            f'megapixels and {self.megabytes:g} MB'
        )


def read_upload(path: Path, limits: Limits) -> Image.Image:
    """Reads a picture that is not trusted.

    The header is read first. Pixels are decoded only of a file that is no larger than
    the limits, in one of ``FORMATS``, and whole. Of an animation it is the first
    picture.

    Args:
        path (Path): The file.
        limits (Limits): The largest that is taken.

    Returns:
        Image.Image: RGB, upright.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is not such a picture; the message says what would be right.
    """
    name = path.name
    if not path.is_file():
        raise FileNotFoundError(f'image={name!r}: there is no such file')
    megabytes = path.stat().st_size / 1e6
    if megabytes > limits.megabytes:
        raise ValueError(
            f'image={name!r} has {megabytes:.3g} MB: give one of {limits.megabytes:g} '
            'MB or fewer'
        )
    with _damage(name, limits), Image.open(path, formats=FORMATS) as image:
        size, mode = image.size, image.mode
    _check_header(name, size, mode, limits)
    with _damage(name, limits):
        with Image.open(path, formats=FORMATS) as image:
            image.verify()
        # verify() leaves a file that can not be decoded
        with Image.open(path, formats=FORMATS) as image:
            return ImageOps.exif_transpose(image).convert('RGB')


@contextmanager
def _damage(name: str, limits: Limits) -> Iterator[None]:
    """Whatever a decoder raises is an error of the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    except Image.DecompressionBombError as error:
        raise ValueError(
            f'image={name!r} has too many pixels: give one of {limits.megapixels:g} '
            'megapixels or fewer'
        ) from error
    except UnidentifiedImageError as error:
        raise ValueError(f'image={name!r} is not an image: give {limits}') from error
    except Exception as error:
        raise ValueError(
            f'image={name!r} is damaged ({error}): give {limits}'
        ) from error


def _check_header(name: str, size: tuple[int, int], mode: str, limits: Limits) -> None:
    width, height = size
    megapixels = width * height / 1e6
    if megapixels > limits.megapixels:
        raise ValueError(
            f'image={name!r} has {width} x {height} pixels, {megapixels:.3g} '
            f'megapixels: give one of {limits.megapixels:g} megapixels or fewer'
        )
    if min(width, height) < SMALLEST:
        raise ValueError(
            f'image={name!r} has {width} x {height} pixels: give one with sides of '
            f'{SMALLEST} or more'
        )
    if max(width, height) > LARGEST_RATIO * min(width, height):
        raise ValueError(
            f'image={name!r} has {width} x {height} pixels: give one whose sides '
            f'differ by a factor of {LARGEST_RATIO} or less'
        )
    if mode.startswith(('I', 'F')):
        raise ValueError(
            f'image={name!r} has more than 8 bits per channel: give one with 8'
        )
