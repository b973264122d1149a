"""Pictures of predictions with titles and legends, by OpenCV and Pillow."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from PIL.PngImagePlugin import PngInfo

from mmlinattn.deployment.predictor import gray_image
from mmlinattn.utils.files import MARK, whole_file

NARROWEST, WIDEST = 400, 1000  # pixels of a panel; a picture has at most the last
FONT = 16
LINE = 22  # height of a line of text
GAP = 8
MOST_NAMES = 24  # in a legend

Color = tuple[int, int, int]


@dataclass(frozen=True)
class Panel:
    """A picture with lines above it and a legend below it."""

    pixels: np.ndarray  # (H, W, 3), uint8, RGB
    lines: Sequence[str]
    legend: Sequence[tuple[str, Color]] = field(default=())


@lru_cache
def font() -> Any:
    """Return the font of matplotlib's figures."""
    folder = Path(matplotlib.get_data_path(), 'fonts', 'ttf')
    return ImageFont.truetype(str(folder / 'DejaVuSans.ttf'), FONT)


def panel_size(shape: Sequence[int]) -> tuple[int, int]:
    """Return width and height at which a picture (H, W) is shown."""
    zoom = min(WIDEST / max(shape[:2]), max(NARROWEST / shape[1], 1))
    return max(round(shape[1] * zoom), 1), max(round(shape[0] * zoom), 1)


def resize(pixels: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return a picture (H, W, 3) of another width and height."""
    smaller = size[0] < pixels.shape[1]
    kind = cv2.INTER_AREA if smaller else cv2.INTER_NEAREST
    return cv2.resize(np.ascontiguousarray(pixels), size, interpolation=kind)


def draw_label_map(
    pixels: np.ndarray, labels: np.ndarray, names: Sequence[str], colors: Any
) -> tuple[np.ndarray, list[tuple[str, Color]]]:
    """Return a photo (H, W, 3) under the colors of a label map (H, W) with dark
    borders, in the size of a panel, and the legend: classes by their share, the largest
    first."""
    size = panel_size(labels.shape)
    present, counts = np.unique(labels, return_counts=True)
    table = np.array([color_of(label, colors) for label in present.tolist()], np.uint8)
    places = np.searchsorted(present, labels).astype(np.float32)
    places = cv2.resize(places, size, interpolation=cv2.INTER_NEAREST).astype(int)
    picture = cv2.addWeighted(resize(pixels, size), 0.5, table[places], 0.5, 0)
    borders = np.zeros(places.shape, bool)
    borders[:-1] |= places[:-1] != places[1:]
    borders[:, :-1] |= places[:, :-1] != places[:, 1:]
    picture[borders] = 0
    legend = []
    for i in np.argsort(-counts, kind='stable'):
        label = int(present[i])
        name = names[label] if label < len(names) else str(label)
        red, green, blue = table[i].tolist()
        share = f'{counts[i] / labels.size:.1%}'
        legend.append((f'{name} {share}', (red, green, blue)))
    return picture, legend


def color_of(label: int, colors: Any) -> Any:
    """Return the color of a label: that of its data set, or one of its own."""
    if colors is not None and label < len(colors):
        return colors[label]
    # hues of neighbors are far apart
    hue = np.array([[[label * 111 % 180, 200, 230]]], np.uint8)
    return cv2.cvtColor(hue, cv2.COLOR_HSV2RGB)[0, 0]


def side_by_side(panels: Sequence[Panel]) -> Image.Image:
    """Return panels in a row, below their lines and above their legends."""
    shown = [resize(panel.pixels, panel_size(panel.pixels.shape)) for panel in panels]
    above = GAP + LINE * max(len(panel.lines) for panel in panels)
    widths = [max(picture.shape[1], NARROWEST) for picture in shown]
    rows = [rows_of(panel.legend, width) for panel, width in zip(panels, widths)]
    height = max(picture.shape[0] for picture in shown)
    below = GAP + LINE * max(map(len, rows))
    size = sum(widths) + GAP * (1 + len(widths)), above + height + below
    canvas = Image.new('RGB', size, 'white')
    pen = ImageDraw.Draw(canvas)
    left = GAP
    for panel, picture, width, legend in zip(panels, shown, widths, rows):
        for i, line in enumerate(panel.lines):
            place = left, GAP // 2 + i * LINE
            pen.text(place, shorten(line, width), 'black', font())
        canvas.paste(Image.fromarray(picture), (left, above))
        write_legend(pen, (left, above + height + GAP // 2), legend)
        left += width + GAP
    return canvas


def write_legend(
    pen: Any, corner: tuple[int, int], rows: Sequence[Sequence[tuple[int, str, Color]]]
) -> None:
    """Write rows of a legend below and right of a corner."""
    for i, row in enumerate(rows):
        top = corner[1] + i * LINE
        for offset, name, color in row:
            left = corner[0] + offset
            pen.rectangle((left, top + 3, left + FONT, top + 3 + FONT), color, 'black')
            pen.text((left + FONT + GAP // 2, top), name, 'black', font())


def rows_of(
    legend: Sequence[tuple[str, Color]], width: int
) -> list[list[tuple[int, str, Color]]]:
    """Return entries of a legend in rows of a width, with their offsets."""
    rows: list[list[tuple[int, str, Color]]] = [[]]
    offset = 0
    more = len(legend) - MOST_NAMES
    entries = list(legend[:MOST_NAMES])
    if more > 0:
        entries.append((f'{more} more', (255, 255, 255)))
    for name, color in entries:
        name = shorten(name, width - FONT - GAP)
        needed = FONT + GAP // 2 + round(font().getlength(name)) + 2 * GAP
        if rows[-1] and offset + needed > width:
            rows.append([])
            offset = 0
        rows[-1].append((offset, name, color))
        offset += needed
    return rows if rows[0] else []


def shorten(text: str, width: int) -> str:
    """Return a text that fits a width."""
    if font().getlength(text) <= width:
        return text
    while text and font().getlength(f'{text}...') > width:
        text = text[:-1]
    return f'{text}...'


def save_picture(picture: Image.Image, path: Path) -> None:
    """Write a PNG file with the mark of our files, whole or not at all."""
    mark = PngInfo()
    mark.add_text('Software', MARK)
    with whole_file(path) as draft:
        picture.save(draft, format='PNG', pnginfo=mark, compress_level=3)


def save_label_map(labels: np.ndarray, path: Path) -> None:
    """Write the ids of a label map (H, W) as a gray PNG file."""
    save_picture(gray_image(labels), path)
