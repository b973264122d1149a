"""Small plots: lines with the range over seeds, and bars with a dot for each seed."""

from typing import NamedTuple

import matplotlib

matplotlib.use('Agg')
from matplotlib import pyplot as plt

DPI = 90


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
    figure, axes = subplots(len(panels))
    for axis, panel in zip(axes, panels):
        for i, (name, (xs, seeds)) in enumerate(panel.curves.items()):
            color = plt.get_cmap('tab10' if len(panel.curves) <= 10 else 'tab20')(i)
            columns = list(zip(*seeds))
            axis.plot(
                xs,
                [sum(x) / len(x) for x in columns],
                'o-',
                markersize=3,
                color=color,
                label=name,
            )
            low, high = map(min, columns), map(max, columns)
            axis.fill_between(xs, list(low), list(high), color=color, alpha=0.2, lw=0)
        axis.set_xscale(panel.xscale)
        axis.set_yscale(panel.yscale)
        decorate(axis, panel)
        axis.legend(fontsize=7)
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
            axis.barh(i, sum(values) / len(values), color='tab:blue', alpha=0.6)
            axis.plot(values, [i] * len(values), 'k.', markersize=5)
        axis.set_yticks(range(len(panel.curves)), list(panel.curves), fontsize=8)
        axis.invert_yaxis()
        axis.set_xscale(panel.xscale)
        decorate(axis, panel)
    finish(figure, path)


def subplots(count):
    figure, axes = plt.subplots(
        1, count, squeeze=False, figsize=(4.4 * count, 3.6), layout='constrained'
    )
    return figure, axes[0]


def decorate(axis, panel):
    if panel.level is not None:
        axis.axhline(panel.level, color='black', linewidth=0.8, linestyle='--')
    axis.set_title(panel.title, fontsize=9)
    axis.set_xlabel(panel.xlabel, fontsize=9)
    axis.set_ylabel(panel.ylabel, fontsize=9)
    axis.tick_params(labelsize=8)
    axis.grid(alpha=0.3, linewidth=0.5)


def finish(figure, path):
    # no date and version: the same numbers give the same file
    figure.savefig(path, dpi=DPI, metadata=dict(Software=None))
    plt.close(figure)
