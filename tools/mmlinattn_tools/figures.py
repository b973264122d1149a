"""Figures in colors that the color-blind can tell apart."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Union

import numpy as np
from matplotlib.figure import Figure

from mmlinattn.utils.files import MARK

COLORS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000']
DASHES, MARKERS = ('-', '--', ':', '-.'), 'osDv^P'


def styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Different styles of curves by their names; dashes vary when colors run out."""
    return {
        name: dict(
            color=COLORS[i % len(COLORS)],
            marker=MARKERS[i % len(MARKERS)],
            linestyle=DASHES[i // len(COLORS) % len(DASHES)],
        )
        for i, name in enumerate(dict.fromkeys(names))
    }


# Settings of matplotlib while a command draws; none changes the drawings of the mm
# libraries on images.
STYLE: Any = [
    'seaborn-v0_8-paper',
    {
        'axes.grid': True,
        'grid.alpha': 0.3,
        'legend.title_fontsize': 8,
        'lines.markersize': 4,
        'savefig.bbox': 'tight',
        'savefig.dpi': 150,
    },
]


def one_legend(figure: Figure, columns: int = 4, **options: Any) -> None:
    """A legend of all axes below them, each name once."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        handles, names = axes.get_legend_handles_labels()
        found.update(zip(names, handles))
    options.update(loc='outside lower center', ncols=min(columns, len(found)))
    figure.legend(found.values(), found.keys(), **options)


def picture_grid(
    lines: int, columns: int, shape: tuple[int, ...], width: float
) -> tuple[Figure, np.ndarray]:
    """A figure and its axes for pictures of (H, W) and titles of some lines; the width
    is a picture's, in inches."""
    height = width * shape[0] / shape[1] + 0.7
    figure = Figure((width * columns, height * lines), layout='constrained')
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat:
        axes.axis('off')
    return figure, grid


def save(content: Union[Figure, dict[str, Any]], path: Path) -> None:
    """Writes a figure, or numbers and arrays as JSON, with the mark of our files."""
    if isinstance(content, Figure):
        content.savefig(path, metadata=dict(Software=MARK))
    else:
        numbers = dict(about=MARK, **content)
        path.write_text(json.dumps(numbers, default=np.ndarray.tolist) + '\n')
