"""Small plots: lines with the range over seeds, and bars with a dot for each seed."""

from io import BytesIO
from typing import NamedTuple

from PIL import Image

from mmlinattn_tools.figures import line_style, new_figure, tidy

DPI = 90
COLORS = 128
LEGEND_ROWS = 5  # of a legend beside the curves; longer ones are below


class Panel(NamedTuple):
    """One set of axes.

    Attributes:
        title (str): Above it.
        xlabel (str): Below it.
        ylabel (str): Beside it.
        curves (dict): By name (xs, one list of ys per seed).
        xscale (str): 'linear' or 'log'.
        yscale (str): 'linear' or 'log'.
        level (float, optional): A dashed horizontal line.
    """

    title: str
    xlabel: str
    ylabel: str
    curves: dict
    xscale: str = 'linear'
    yscale: str = 'linear'
    level: float = None


def plot_lines(panels, path):
    """Draws curves: mean over seeds as a line, least to greatest as a band.

    Args:
        panels (list[Panel]): From left to right.
        path (Path): PNG to write.
    """
    rows = max(len(panel.curves) for panel in panels)
    figure, axes = subplots(len(panels), 0.11 * rows if rows > LEGEND_ROWS else 0)
    for axis, panel in zip(axes, panels):
        for i, (name, (xs, seeds)) in enumerate(panel.curves.items()):
            columns, style = list(zip(*seeds)), line_style(i)
            axis.plot(xs, [sum(x) / len(x) for x in columns], label=name, **style)
            low, high = list(map(min, columns)), list(map(max, columns))
            axis.fill_between(xs, low, high, color=style['color'], alpha=0.2, lw=0)
        axis.set_xscale(panel.xscale)
        axis.set_yscale(panel.yscale)
        decorate(axis, panel)
        below = dict(loc='upper center', bbox_to_anchor=(0.5, -0.16), ncols=2)
        axis.legend(fontsize=7, **below if len(panel.curves) > LEGEND_ROWS else {})
    finish(figure, path)


def plot_bars(panels, path):
    """Draws bars: mean over seeds, and a dot for each seed.

    Args:
        panels (list[Panel]): ``curves`` has the list of a name's values.
        path (Path): PNG to write.
    """
    figure, axes = subplots(len(panels))
    for axis, panel in zip(axes, panels):
        for i, values in enumerate(panel.curves.values()):
            axis.barh(
                i, sum(values) / len(values), color=line_style(0)['color'], alpha=0.6
            )
            axis.plot(values, [i] * len(values), 'k.', markersize=5)
        axis.set_yticks(range(len(panel.curves)), list(panel.curves), fontsize=8)
        axis.invert_yaxis()
        axis.set_xscale(panel.xscale)
        decorate(axis, panel)
    finish(figure, path)


def subplots(count, room=0):
    """Axes beside each other, with room for legends below them, in inches."""
    figure = new_figure(4.4 * count, 3.6 + room)
    return figure, figure.subplots(1, count, squeeze=False)[0]


def decorate(axis, panel):
    if panel.level is not None:
        axis.axhline(panel.level, color='black', linewidth=0.8, linestyle='--')
    tidy(axis, panel.title, panel.xlabel, panel.ylabel)


def finish(figure, path):
    drawn = BytesIO()
    figure.savefig(drawn, dpi=DPI)
    # a palette makes it small, and without date and version equal numbers give one file
    with Image.open(drawn) as picture:
        picture.convert('RGB').quantize(COLORS).save(path, optimize=True)
