"""Figures that a paper can take, and files.

Colors are those of Okabe and Ito, which the color-blind can tell apart; lines also
differ in their markers.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Union

import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmlinattn.utils.files import MARK

COLORS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000')
MARKERS = ('o', 's', '^', 'D', 'v', 'P', 'X')
# Of matplotlib, for as long as a command draws; nothing that changes how the mm
# libraries draw on images.
STYLE: Any = {
    'axes.grid': True,
    'axes.labelsize': 9,
    'axes.prop_cycle': cycler(color=COLORS, marker=MARKERS),
    'axes.spines.right': False,
    'axes.spines.top': False,
    'axes.titlesize': 9,
    'grid.alpha': 0.3,
    'grid.linewidth': 0.5,
    'legend.fontsize': 8,
    'lines.markersize': 4,
    'savefig.bbox': 'tight',
    'savefig.dpi': 150,
    'xtick.labelsize': 8,
    'ytick.labelsize': 8,
}


def plot_range(
    axes: Axes,
    xs: Sequence[float],
    samples: Sequence[Sequence[float]],
    label: str,
    center: Callable[[Sequence[float]], Any] = np.mean,
) -> None:
    """Draws the center of the samples at each x as a line, their range as a band."""
    (line,) = axes.plot(xs, [center(x) for x in samples], label=label)
    low, high = list(map(min, samples)), list(map(max, samples))
    axes.fill_between(xs, low, high, color=line.get_color(), alpha=0.2, lw=0)


def picture_grid(
    lines: int, columns: int, shape: tuple[int, ...], width: float
) -> tuple[Figure, np.ndarray]:
    """A figure and its axes for pictures of (H, W), and titles of some lines; the
    width is that of a picture in inches."""
    height = width * shape[0] / shape[1] + 0.7
    figure = Figure((width * columns, height * lines), layout='constrained')
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
