"""Attention of query positions to all patches of an image, as maps.

Legend: h heads, (H, W) map of keys.
"""

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from mmlinattn.analysis import AttentionCall, attentions_of, watch

from .command import Subject
from .figures import new_figure
from .models import feature_extractor

PANEL = 2.2  # inches
LINE = 0.16  # inches of a line of a title
LABEL = 30  # letters that fit above a panel
COLUMNS = 6  # the most maps beside a picture
# Where the scale of a map is.
SCALE: dict[str, Any] = dict(
    orientation='horizontal', fraction=0.05, pad=0.02, shrink=0.9
)

Point = tuple[float, float]


class Heatmap(NamedTuple):
    """Weights that a query gives to the keys of a layer.

    Attributes:
        layer (str): Name of the layer, without ``.attn``.
        heads (str): Which heads, in words.
        weights (np.ndarray): (H, W).
    """

    layer: str
    heads: str
    weights: np.ndarray


class HeatmapRow(NamedTuple):
    """A picture, a query in it, and its maps.

    Attributes:
        label (str): Name of the model.
        point (tuple[float]): (x, y) of the query as parts of the sides, 0 to 1.
        pixels (np.ndarray): (height, width, 3), uint8, RGB.
        maps (list[Heatmap]): By layer and head.
    """

    label: str
    point: Point
    pixels: np.ndarray
    maps: list[Heatmap]


def short_name(layer: str) -> str:
    """Name of an attention's block, or of the attention if it is in none."""
    return layer.rpartition('.attn')[0] or layer


def choose_layers(backbone: nn.Module, wanted: Optional[Sequence[str]]) -> list[str]:
    """Names of the attentions to show, in their order.

    Args:
        backbone (nn.Module): With attentions of mmlinattn.
        wanted (Sequence[str], optional): Names of layers, or their numbers from 0.
            Default: the last one of each stage, up to six in a plain model.

    Raises:
        KeyError: If one does not exist.
        ValueError: If the model has no attention of mmlinattn.
    """
    names = list(attentions_of(backbone))
    short = [short_name(name) for name in names]
    if wanted is None:
        return _default_layers(names)
    chosen = []
    for layer in wanted:
        if layer.isdecimal() and int(layer) < len(names):
            chosen.append(names[int(layer)])
        elif layer in names or layer in short:
            chosen.append(
                names[names.index(layer) if layer in names else short.index(layer)]
            )
        else:
            raise KeyError(
                f'--layers {layer}: there is no such layer; the model has 0 to '
                f'{len(names) - 1}, which are {", ".join(short)}'
            )
    return sorted(set(chosen), key=names.index)


def _default_layers(names: Sequence[str]) -> list[str]:
    last = {name.partition('blocks')[0]: name for name in names}
    if len(last) > 2:  # plain models have blocks, and perhaps class layers
        return list(last.values())
    places = np.linspace(0, len(names) - 1, min(len(names), 6)).round().astype(int)
    return [names[i] for i in places]


def choose_heads(maps: Tensor, wanted: Sequence[str]) -> dict[str, Tensor]:
    """Maps of some heads.

    Args:
        maps (Tensor): By head, (h, H, W).
        wanted (Sequence[str]): Numbers from 0, or the one word 'all' or 'mean'.

    Returns:
        dict[str, Tensor]: By title, (H, W).

    Raises:
        KeyError: If a head does not exist.
    """
    if list(wanted) == ['mean']:
        return {'mean of heads': maps.mean(0)}
    if list(wanted) == ['all']:
        wanted = [str(i) for i in range(len(maps))]
    wrong = [x for x in wanted if not x.isdecimal() or int(x) >= len(maps)]
    if wrong:
        raise KeyError(
            f'--heads {wrong[0]}: there is no such head; a layer shown has 0 to '
            f"{len(maps) - 1}, 'all' or 'mean'"
        )
    return {f'head {x}': maps[int(x)] for x in wanted}


@torch.no_grad()
def attention_maps(
    backbone: nn.Module, inputs: Tensor, layers: Sequence[str], points: Sequence[Point]
) -> dict[str, Tensor]:
    """Weights that queries give to all keys, on the map of the keys.

    Args:
        backbone (nn.Module): In eval mode.
        inputs (Tensor): (1, 3, height, width).
        layers (Sequence[str]): Names of attentions, see :func:`choose_layers`.
        points (Sequence[tuple[float]]): (x, y) as parts of the sides, 0 to 1.

    Returns:
        dict[str, Tensor]: By layer, (queries, h, H, W).

    Raises:
        ValueError: If a weight is not finite.
    """
    maps = {}

    def look(call: AttentionCall) -> None:
        if call.name in layers:
            rows = call.rows([call.query_at(*point) for point in points])[0]
            if not rows.isfinite().all():
                raise ValueError(
                    f'the attention of {short_name(call.name)} has NaN or infinite '
                    'weights, so there is nothing to draw: check the checkpoint'
                )
            maps[call.name] = rows.transpose(0, 1).unflatten(-1, call.key_shape).cpu()

    with watch(backbone, look):
        backbone(inputs)
    return maps


def heatmap_rows(
    subject: Subject,
    path: Path,
    points: Sequence[Point],
    layers: Optional[Sequence[str]] = None,
    heads: Sequence[str] = ('mean',),
) -> list[HeatmapRow]:
    """Maps of a model for queries in an image.

    Args:
        subject (Subject): The model.
        path (Path): The image.
        points (Sequence[tuple[float]]): (x, y) as parts of the sides, 0 to 1.
        layers (Sequence[str], optional): See :func:`choose_layers`.
        heads (Sequence[str]): See :func:`choose_heads`.

    Returns:
        list[HeatmapRow]: One for each query.

    Raises:
        KeyError: If a layer or a head does not exist.
        ValueError: If the model has no attention of mmlinattn.
    """
    backbone = feature_extractor(subject.model)
    names = choose_layers(backbone, layers)
    picture = subject.read(path)
    maps = attention_maps(backbone, picture.inputs, names, points)
    rows = []
    for i, point in enumerate(points):
        panels = [
            Heatmap(short_name(name), title, weights.numpy())
            for name in names
            if name in maps
            for title, weights in choose_heads(maps[name][i], heads).items()
        ]
        rows.append(HeatmapRow(subject.label, point, picture.pixels, panels))
    return rows


def heatmap_numbers(
    subjects: Sequence[Subject], rows: Sequence[HeatmapRow]
) -> dict[str, Any]:
    """What the JSON file says of a figure."""
    return dict(
        models=[subject.describe() for subject in subjects],
        rows=[
            dict(
                label=row.label,
                query=list(row.point),
                maps=[
                    dict(layer=x.layer, heads=x.heads, weights=x.weights.tolist())
                    for x in row.maps
                ],
            )
            for row in rows
        ],
    )


def draw_heatmaps(rows: Sequence[HeatmapRow]) -> Figure:
    """Draws each picture with its query, and the maps beside it.

    Each map has its own scale, which is below it; where weights are negative, it is
    symmetric about 0. More than ``COLUMNS`` maps continue in a line below.
    """
    columns = min(max(len(row.maps) for row in rows), COLUMNS)
    lines = [max(-(-len(row.maps) // columns), 1) for row in rows]
    height, width = rows[0].pixels.shape[:2]
    labels = [_in_lines(row.label) for row in rows]
    room = 0.55 + LINE * max(label.count('\n') + 1 for label in [*labels, '\n'])
    figure = new_figure(
        PANEL * (1 + columns), (PANEL * height / width + room) * sum(lines)
    )
    grid = figure.subplots(sum(lines), 1 + columns, squeeze=False)
    for axes in grid.flat:
        axes.axis('off')
    for row, label, first, num in zip(rows, labels, np.cumsum([0, *lines]), lines):
        gray = row.pixels.mean(-1)
        picture = grid[first, 0]
        # an unseen scale, as the maps have one, keeps the picture in line with them
        scale = figure.colorbar(picture.imshow(row.pixels), ax=picture, **SCALE)
        scale.ax.set_visible(False)
        picture.set_title(label, fontsize=8)
        _mark(picture, row)
        for axes, (layer, heads, weights) in zip(
            grid[first : first + num, 1:].flat, row.maps
        ):
            axes.imshow(gray, cmap='gray')
            _draw_map(figure, axes, weights, row.pixels)
            axes.set_title(f'{layer}\n{heads}', fontsize=8)
            _mark(axes, row)
    return figure


def _in_lines(label: str) -> str:
    """A label in lines that fit above a panel."""
    return '\n'.join(
        part for line in label.splitlines() for part in textwrap.wrap(line, LABEL)
    )


def _draw_map(
    figure: Figure, axes: Axes, weights: np.ndarray, pixels: np.ndarray
) -> None:
    signed = weights.min() < 0
    bound = np.abs(weights).max() or 1.0
    least = -bound if signed else 0.0
    image = axes.imshow(
        weights,
        cmap='PuOr' if signed else 'viridis',
        alpha=0.75,
        extent=(-0.5, pixels.shape[1] - 0.5, pixels.shape[0] - 0.5, -0.5),
        interpolation='nearest',
        vmin=least,
        vmax=bound,
    )
    bar = figure.colorbar(image, ax=axes, **SCALE)
    bar.set_ticks([least, bound])
    bar.set_ticklabels([f'{least:.2g}', f'{bound:.2g}'])
    bar.ax.tick_params(labelsize=7)


def _mark(axes: Axes, row: HeatmapRow) -> None:
    """A cross at the query."""
    sides = row.pixels.shape[1::-1]
    x, y = (part * side for part, side in zip(row.point, sides))
    for color, size in (('black', 9), ('white', 6)):
        axes.plot(x, y, marker='+', color=color, markersize=size, mew=size / 3)
