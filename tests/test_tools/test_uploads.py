import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from mmlinattn_tools.visualization.uploads import Limits, read_upload

pytestmark = pytest.mark.modern

LIMITS = Limits(megapixels=0.011, megabytes=0.1)


def encoded(form='PNG', size=(90, 60), mode='RGB', **options):
    pixels = np.random.default_rng(0).integers(0, 255, (*size[::-1], 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(file, form, **options)
    return file.getvalue()


@pytest.fixture
def read(tmp_path):
    def call(content, name='picture.png', limits=LIMITS):
        path = tmp_path / name
        path.write_bytes(content)
        return np.asarray(read_upload(path, limits))

    return call


@pytest.mark.parametrize('form', ('PNG', 'JPEG', 'WEBP', 'BMP'))
def test_formats(read, form):
    """Known by their bytes, whatever their name; (H, W, 3)."""
    content = encoded(form)
    found = read(content, 'name.txt')
    expected = np.asarray(Image.open(io.BytesIO(content)))
    assert found.shape == (60, 90, 3) and found.dtype == np.uint8
    assert np.array_equal(found, expected)


@pytest.mark.parametrize('mode', ('L', 'P', 'RGBA', '1'))
def test_modes(read, mode):
    assert read(encoded(mode=mode)).shape == (60, 90, 3)


def test_upright(read):
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    assert read(encoded('JPEG', exif=exif)).shape == (90, 60, 3)


def test_first_picture_of_an_animation(read):
    first, *more = (Image.new('RGB', (40, 40), x) for x in ('red', 'blue'))
    file = io.BytesIO()
    first.save(file, 'PNG', save_all=True, append_images=more)
    assert (read(file.getvalue()) == (255, 0, 0)).all()


def header_only(width, height):
    """A PNG file that says how large it is, and has no pixels."""
    size = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    chunks = b''
    for kind, data in ((b'IHDR', size), (b'IDAT', b''), (b'IEND', b'')):
        crc = struct.pack('>I', zlib.crc32(kind + data))
        chunks += struct.pack('>I', len(data)) + kind + data + crc
    return b'\x89PNG\r\n\x1a\n' + chunks


@pytest.mark.parametrize(
    'content, message',
    (
        (
            b'',
            "image='picture.png' is not an image: give PNG, JPEG, WEBP or BMP, up to",
        ),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', 'is not an image'),
        (b'%PDF-1.4', 'is not an image'),
        (encoded('GIF'), 'is not an image'),
        (encoded('TIFF'), 'is not an image'),
        (encoded()[:2000], 'is damaged'),
        (encoded('JPEG')[:2000], 'is damaged'),
        (header_only(90, 60), 'is damaged'),
        (
            encoded(size=(106, 104)),
            'has 106 x 104 pixels, 0.011 megapixels: give one of',
        ),
        (header_only(50_000, 50_000), 'megapixels or fewer'),
        (header_only(2**31 - 1, 2**31 - 1), 'megapixels or fewer'),
        (encoded(size=(31, 60)), 'has 31 x 60 pixels: give one with sides of 32 or'),
        (encoded(size=(32, 321)), 'sides differ by a factor of 10 or less'),
        (bytes(100_001), r'has 0\.1 MB: give one of 0\.1 MB or fewer'),
    ),
)
def test_refused(read, content, message):
    with pytest.raises(ValueError, match=message) as error:
        read(content)
    assert '\n' not in str(error.value)


def test_sixteen_bits(read):
    file = io.BytesIO()
    Image.fromarray(np.full((60, 90), 30_000, np.uint16)).save(file, 'PNG')
    with pytest.raises(ValueError, match='more than 8 bits per channel'):
        read(file.getvalue())


def test_bound_before_decoding(read, monkeypatch):
    """Pixels of a picture beyond the bound are never decoded."""

    def load(self):
        raise AssertionError('decoded')

    content = encoded(size=(106, 104))
    monkeypatch.setattr('PIL.PngImagePlugin.PngImageFile.load', load)
    with pytest.raises(ValueError, match='106 x 104'):
        read(content)


@pytest.mark.parametrize('form', ('PNG', 'JPEG', 'WEBP', 'BMP'))
def test_damaged_bytes(read, form):
    """A picture, or an error in one line that says that it is none."""
    content, generator = encoded(form), np.random.default_rng(0)
    messages = []
    for _ in range(60):
        damaged = bytearray(content)
        for place in generator.integers(0, len(content), 8):
            damaged[place] = generator.integers(256)
        try:
            assert read(bytes(damaged)).shape[-1] == 3
        except ValueError as error:
            messages.append(str(error))
    assert all(x.startswith("image='picture.png' ") for x in messages)
    assert messages or form != 'PNG'


def test_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="image='x.png': there is no such file"):
        read_upload(tmp_path / 'x.png', LIMITS)
