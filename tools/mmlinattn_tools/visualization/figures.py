"""Figures that a paper can take: colors, and files.

Colors are those of Okabe and Ito, which the color-blind can tell apart; lines also
differ in their markers and dashes.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mmlinattn.utils.files import MARK

COLORS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000')
MARKERS = ('o', 's', '^', 'D', 'v', 'P', 'X')
DASHES = ('-', '--', '-.', ':')
DPI = 150


def line_style(index: int) -> dict[str, Any]:
    """Arguments of a line that differs from the other ones of a plot.

    Args:
        index (int): Number of the line.
    """
    return dict(
        color=COLORS[index % len(COLORS)],
        marker=MARKERS[index % len(MARKERS)],
        linestyle=DASHES[index // len(COLORS) % len(DASHES)],
        markersize=4,
        linewidth=1.5,
    )


def new_figure(width: float, height: float) -> Figure:
    """A figure that leaves room for its labels.

    Args:
        width (float): In inches.
        height (float): In inches.
    """
    return Figure((width, height), layout='constrained')


def tidy(axes: Axes, title: str, xlabel: str, ylabel: str) -> None:
    """Labels axes, and lightens what is around the data."""
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    axes.tick_params(which='both', labelsize=8)
    axes.grid(alpha=0.3, linewidth=0.5)
    axes.spines[['top', 'right']].set_visible(False)


def save(figure: Figure, path: Path, svg: bool = False) -> list[Path]:
    """Writes a figure.

    Args:
        figure (Figure): The figure.
        path (Path): A .png file; its folder is made.
        svg (bool): Writes an .svg file beside it, too.

    Returns:
        list[Path]: What was written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    paths = [path, path.with_suffix('.svg')] if svg else [path]
    for place in paths:
        key = 'Software' if place.suffix == '.png' else 'Creator'
        figure.savefig(place, dpi=DPI, metadata={key: MARK})
    return paths


def figure_pixels(figure: Figure) -> np.ndarray:
    """A figure as (H, W, 3), uint8, RGB."""
    canvas = FigureCanvasAgg(figure)
    figure.set_dpi(DPI)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def save_numbers(numbers: dict[str, Any], path: Path) -> Path:
    """Writes the numbers of a figure as JSON, with six digits; what is not finite
    becomes null.

    Args:
        numbers (dict): What JSON can hold, and tensors' lists.
        path (Path): The file; its folder is made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    marked = dict(about=MARK, **_rounded(numbers))
    path.write_text(json.dumps(marked) + '\n')
    return path


def _rounded(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _rounded(value) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [_rounded(value) for value in node]
    if isinstance(node, float):
        return float(f'{node:.6g}') if math.isfinite(node) else None
    return node
