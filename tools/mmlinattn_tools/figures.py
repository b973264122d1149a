"""Figures that a paper can take, in colors that the color-blind can tell apart."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Union

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmlinattn.utils.files import MARK

# Of matplotlib, for as long as a command draws; nothing that changes how the mm
# libraries draw on images.
STYLE: Any = [
    'seaborn-v0_8-paper',
    'tableau-colorblind10',
    {
        'axes.grid': True,
        'grid.alpha': 0.3,
        'lines.marker': 'o',
        'lines.markersize': 4,
        'savefig.bbox': 'tight',
        'savefig.dpi': 150,
    },
]


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
