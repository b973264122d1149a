"""A picture of photos with their labels, to look at before a training.

Photos keep their pixels: boxes and outlines are thin lines, in one color a class, which
a legend names. Where objects are small, a part of the photo is drawn.
"""

import colorsys
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mmlinattn.cli.figures import picture_grid, save

from .data_set import OwnData
from .label_maps import UNLABELED
from .records import Object, Photo, every_photo

SIDE = 480  # pixels of a photo's longer side
LINES = COLUMNS = 4
LEAST = 16  # pixels of an object's longer side in a picture of the whole photo
ENLARGED = 40  # pixels of such an object in a part of the photo
TITLE = 30  # letters
LEGEND = 40  # classes
NAMED = 12  # objects in a photo, of which each has its name written beside it
GRAY = (0.6, 0.6, 0.6)  # pixels without a label
NAME_SIZE = 6  # points
NAME_HEIGHT = 20  # pixels of a photo that a name takes
# of red, green and blue in how bright a color looks (ITU-R BT.709)
BRIGHTNESS = (0.2126, 0.7152, 0.0722)


@dataclass(frozen=True)
class Window:
    """The part of a photo that is drawn: from (left, top), of (width, height) pixels,
    enlarged by ``zoom``."""

    left: float
    top: float
    width: float
    height: float
    zoom: float

    def corners(self, places: np.ndarray) -> np.ndarray:
        """Return places (N, 2) of the photo in the picture."""
        return (places - (self.left, self.top)) * self.zoom


def show(data: OwnData, path: Path) -> None:
    """Draw up to 16 photos of a data set with their labels into a file."""
    photos = {photo.path: photo for photo in every_photo(data.splits)}
    chosen = list(photos.values())[:: max(1, len(photos) // (LINES * COLUMNS))]
    lines = min(LINES, math.ceil(len(chosen) / COLUMNS))
    figure, axes = picture_grid(lines, COLUMNS, chosen[0].size[::-1], 3.0)
    for photo, ax in zip(chosen, axes.flat):
        draw(data, photo, ax)
    strokes = [Line2D([], [], color=color_of(i)) for i in range(len(data.classes))]
    if data.folder.options.task != 'cls':
        names = [shorten(name) for name in data.classes]
        figure.legend(
            strokes[:LEGEND],
            names[:LEGEND],
            loc='outside lower center',
            ncols=8,
            fontsize=7,
        )
    save(figure, path)


def color_of(label: int) -> tuple[float, float, float]:
    """Return the color of a class, red, green and blue from 0 to 1."""
    return colorsys.hsv_to_rgb(label * 0.618 % 1, 0.9, 1.0)


def shorten(name: str) -> str:
    """Return a name with its begin and end alone, if it is long."""
    half = TITLE // 2 - 1
    return name if len(name) <= TITLE else f'{name[:half]}...{name[-half:]}'


def draw(data: OwnData, photo: Photo, ax: Axes) -> None:
    """Draw a photo and its labels."""
    objects = [item for item in photo.objects if item.name in data.classes]
    window = choose_window(photo, objects)
    x, y = round(window.left), round(window.top)
    pixels = cv2.imread(str(photo.path))
    pixels = pixels[y : y + round(window.height), x : x + round(window.width)]
    width = max(1, round(window.width * window.zoom))
    height = max(1, round(window.height * window.zoom))
    pixels = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA)
    ax.imshow(pixels[..., ::-1])
    ax.set_xlim(0, width)
    ax.set_ylim(height, 0)
    if data.label_maps:
        draw_map(data.label_maps.labels(photo), window, ax)
    else:
        for item in objects:
            draw_object(item, data.classes.index(item.name), window, ax)
            if len(objects) <= NAMED:
                write_name(item, data.classes.index(item.name), window, ax)
    words = [shorten(photo.path.name)]
    if window.width < photo.size[0] or window.height < photo.size[1]:
        words.append('(a part)')
    if photo.class_name is not None:
        words.append(shorten(photo.class_name))
    ax.set_title('\n'.join(words), fontsize=7)


def choose_window(photo: Photo, objects: list[Object]) -> Window:
    """Return the whole photo, or a part around an object where most objects are
    small."""
    width, height = photo.size
    zoom = SIDE / max(width, height)
    by_side = sorted(objects, key=lambda item: max(item.bbox[2:]))
    if not by_side or photo.label_map or photo.is_drawn:
        return Window(0, 0, width, height, zoom)
    x, y, w, h = by_side[len(by_side) // 2].bbox
    side = max(w, h, 1)
    if side * zoom >= LEAST:
        return Window(0, 0, width, height, zoom)
    part = side * SIDE / ENLARGED
    sides = min(part, width), min(part, height)
    left = min(max(x + w / 2 - sides[0] / 2, 0), width - sides[0])
    top = min(max(y + h / 2 - sides[1] / 2, 0), height - sides[1])
    return Window(round(left), round(top), *sides, SIDE / max(sides))


def draw_object(item: Object, label: int, window: Window, ax: Axes) -> None:
    """Draw the box of an object, and its outline."""
    x, y, width, height = item.bbox
    places = np.array(
        [[x, y], [x + width, y], [x + width, y + height], [x, y + height]]
    )
    draw_line(places, label, window, ax, 'dotted' if item.outline else 'solid')
    for places in outlines(item):
        draw_line(places, label, window, ax)


def write_name(item: Object, label: int, window: Window, ax: Axes) -> None:
    """Write the class of an object above its box, or inside at the photo's border."""
    left, top = window.corners(np.array([item.bbox[:2]]))[0]
    color = color_of(label)
    ax.text(
        max(left, 0),
        max(top, 0),
        shorten(item.name),
        color='black' if np.dot(color, BRIGHTNESS) > 0.4 else 'white',
        fontsize=NAME_SIZE,
        va='bottom' if top > NAME_HEIGHT else 'top',
        bbox=dict(facecolor=color, linewidth=0, pad=0.6, alpha=0.8),
        clip_on=True,
    )


def outlines(item: Object) -> Iterator[np.ndarray]:
    """Yield the corners (N, 2) of an object's outlines."""
    if item.outline is None:
        return
    for polygon in item.outline.polygons:
        yield np.reshape(polygon, (-1, 2))
    if item.outline.runs:
        height, width = item.outline.runs['size']
        yield from contours(item.outline.mask((width, height)))


def contours(mask: np.ndarray) -> list[np.ndarray]:
    """Return the borders of what is not 0 in a mask (H, W), each (N, 2)."""
    mask = np.ascontiguousarray(mask, np.uint8)
    borders, _ = cv2.findContours(mask, cv2.RETR_CCOMP, cv2.CHAIN_APPROX_SIMPLE)
    return [contour.reshape(-1, 2) + 0.5 for contour in borders]


def draw_map(labels: np.ndarray, window: Window, ax: Axes) -> None:
    """Draw the borders of the areas in a map of labels (H, W)."""
    for label in np.unique(labels).tolist():
        for places in contours(labels == label):
            draw_line(places, label, window, ax)


def draw_line(
    places: np.ndarray, label: int, window: Window, ax: Axes, style: str = 'solid'
) -> None:
    """Draw a closed line through places (N, 2) of a photo."""
    closed = window.corners(np.concatenate([places, places[:1]]))
    color = GRAY if label == UNLABELED else color_of(label)
    ax.plot(*closed.T, color=color, linewidth=0.7, linestyle=style)
