"""Figures that a paper can take: colors, and files.

Colors are those of Okabe and Ito, which the color-blind can tell apart; lines also
differ in their markers and dashes.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable

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


def save(figure: Figure, path: Path, svg: bool = False) -> list[Path]:
    """Writes a figure to a path without ending, as .png and if wanted as .svg."""
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = {'.png': 'Software', '.svg': 'Creator'} if svg else {'.png': 'Software'}
    for ending, key in keys.items():
        figure.savefig(f'{path}{ending}', metadata={key: MARK})
    return [Path(f'{path}{ending}') for ending in keys]


def save_numbers(numbers: dict[str, Any], path: Path) -> Path:
    """Writes what JSON can hold, and arrays, to a path without ending: with six digits,
    null for what is not finite."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = Path(f'{path}.json')
    file.write_text(json.dumps(dict(about=MARK, **_rounded(numbers))) + '\n')
    return file


def _rounded(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _rounded(value) for key, value in node.items()}
    if isinstance(node, np.ndarray):
        node = node.tolist()
    if isinstance(node, (list, tuple)):
        return [_rounded(value) for value in node]
    if isinstance(node, float):
        return float(f'{node:.6g}') if math.isfinite(node) else None
    return node
