"""Figures that a paper can take: colors, and files.

Colors are those of Okabe and Ito, which the color-blind can tell apart; lines also
differ in their markers and dashes.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Union

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmlinattn.utils.files import MARK

COLORS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000')
MARKERS = ('o', 's', '^', 'D', 'v', 'P', 'X')
DASHES = ('-', '--', '-.', ':')


def line_style(index: int) -> dict[str, Any]:
    """Arguments of ``plot`` that tell a line, by its number, from the other ones."""
    return dict(
        color=COLORS[index % len(COLORS)],
        marker=MARKERS[index % len(MARKERS)],
        linestyle=DASHES[index // len(COLORS) % len(DASHES)],
        markersize=4,
        linewidth=1.5,
    )


def new_figure(width: float, height: float) -> Figure:
    """A figure, its sides in inches, that leaves room for its labels."""
    return Figure((width, height), dpi=150, layout='constrained')


def tidy(axes: Axes, title: str, xlabel: str, ylabel: str) -> None:
    """Labels axes, and lightens what is around the data."""
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    axes.tick_params(which='both', labelsize=8)
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.spines[['top', 'right']].set_visible(False)


def plot_range(
    axes: Axes,
    xs: Sequence[float],
    samples: Sequence[Sequence[float]],
    index: int,
    label: str,
    center: Callable[[Sequence[float]], Any] = np.mean,
) -> None:
    """Draws the center of the samples at each x as a line, their range as a band."""
    style = line_style(index)
    axes.plot(xs, [center(x) for x in samples], label=label, **style)
    low, high = list(map(min, samples)), list(map(max, samples))
    axes.fill_between(xs, low, high, color=style['color'], alpha=0.2, lw=0)


def picture_grid(
    lines: int, columns: int, shape: tuple[int, ...], width: float
) -> tuple[Figure, np.ndarray]:
    """A figure and its axes for pictures of (H, W), and titles of some lines; the
    width is that of a picture in inches."""
    height = width * shape[0] / shape[1] + 0.7
    figure = new_figure(width * columns, height * lines)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat:
        axes.axis('off')
    return figure, grid


def save(content: Union[Figure, dict[str, Any]], path: Path) -> None:
    """Writes a figure, or numbers and arrays as JSON, with the mark of our files."""
    if isinstance(content, Figure):
        key = 'Creator' if path.suffix == '.svg' else 'Software'
        content.savefig(path, metadata={key: MARK})
    else:
        numbers = dict(about=MARK, **content)
        path.write_text(json.dumps(numbers, default=np.ndarray.tolist) + '\n')
