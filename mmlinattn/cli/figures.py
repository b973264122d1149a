"""Figures, and files of them and of their numbers."""

import json
from pathlib import Path
from typing import Any, Union

import numpy as np
from matplotlib.figure import Figure

from mmlinattn.utils.files import MARK, whole_file

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


def picture_grid(
    lines: int, columns: int, shape: tuple[int, ...], width: float
) -> tuple[Figure, np.ndarray]:
    """Return a figure and its axes for pictures of (H, W) and titles of some lines; the
    width is a picture's, in inches."""
    height = width * shape[0] / shape[1] + 0.7
    figure = Figure((width * columns, height * lines), layout='constrained')
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat:
        axes.axis('off')
    return figure, grid


def save(content: Union[Figure, dict[str, Any]], path: Path) -> None:
    """Write a figure, or numbers and arrays as JSON, with the mark of our files, whole
    or not at all."""
    with whole_file(path) as draft:
        if isinstance(content, Figure):
            kind = path.suffix[1:] or None
            content.savefig(draft, format=kind, metadata=dict(Software=MARK))
        else:
            numbers = dict(about=MARK, **content)
            draft.write_text(json.dumps(numbers, default=np.ndarray.tolist) + '\n')
