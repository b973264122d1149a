"""Plots of what was measured, in small PNG files."""

from io import BytesIO
from itertools import cycle
from typing import NamedTuple, Optional

import matplotlib
from PIL import Image

from .cases import size
from .operators import OTHERS, shares, total_seconds
from .report import growth

matplotlib.use('Agg')
from matplotlib import pyplot as plt

BAR_OF = ('case', 'shape', 'step', 'variant')
BAR = 0.16  # inches
DPI, COLORS = 90, 128
FEW = 5  # places that all have ticks
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
        bottom (float, optional): Where the vertical axis begins.
    """

    title: str
    xlabel: str
    ylabel: str
    curves: dict
    xscale: str = 'linear'
    yscale: str = 'linear'
    level: Optional[float] = None
    bottom: Optional[float] = None


def plot_lines(panels, path):
    """Draws curves: the mean over seeds as a line, least to greatest as a band.

    Args:
        panels (list[Panel]): From left to right.
        path (Path): PNG to write.
    """
    rows = max(len(panel.curves) for panel in panels)
    height = 3.6 + (0.11 * rows if rows > LEGEND_ROWS else 0)
    figure, axes = subplots(len(panels), 4.4 * len(panels), height)
    for axis, panel in zip(axes, panels):
        for (name, (xs, seeds)), color in zip(
            panel.curves.items(), colors_of(panel.curves).values()
        ):
            columns = list(zip(*seeds))
            means = [sum(values) / len(values) for values in columns]
            marks = max(len(xs) // 10, 1)
            axis.plot(xs, means, 'o-', color=color, label=name, ms=3, markevery=marks)
            low, high = list(map(min, columns)), list(map(max, columns))
            axis.fill_between(xs, low, high, color=color, alpha=0.2, lw=0)
        axis.set(xscale=panel.xscale, yscale=panel.yscale)
        axis.set_xlabel(panel.xlabel, fontsize=9)
        axis.set_ylabel(panel.ylabel, fontsize=9)
        axis.set_title(panel.title, fontsize=10)
        axis.tick_params(which='both', labelsize=8)
        axis.grid(alpha=0.3, linewidth=0.5)
        places = sorted({x for xs, _ in panel.curves.values() for x in xs})
        if panel.xscale == 'log' and len(places) <= FEW:
            axis.set_xticks(places, [f'{x:,}' for x in places])
            axis.set_xticks([], minor=True)
        if panel.level is not None:
            axis.axhline(panel.level, color='black', linewidth=0.8, linestyle='--')
        if panel.bottom is not None:
            axis.set_ylim(panel.bottom)
        below = dict(loc='upper center', bbox_to_anchor=(0.5, -0.16), ncols=2)
        axis.legend(fontsize=7, **below if len(panel.curves) > LEGEND_ROWS else {})
    save(figure, path)


def plot_growth(rows, path):
    """Draws memory against the number of tokens, one panel a case and step.

    Args:
        rows (list[dict]): Rows of the report.
        path (Path): PNG to write.
    """
    panels = {}
    for curve in growth(rows):
        title = f'{curve["case"]}, {curve["step"]}'
        label = 'peak memory of a step, MiB'
        panel = panels.setdefault(
            title, Panel(title, 'tokens N', label, {}, 'log', 'log')
        )
        if curve['exponent'] is not None:
            name = f'{curve["variant"]}, N^{curve["exponent"]:.2f}'
            mebibytes = [count / 2**20 for count in curve['bytes']]
            panel.curves[name] = curve['tokens'], [mebibytes]
    plot_lines(list(panels.values()), path)


def plot_ratios(rows, path):
    """Draws bars of the ratios of time and memory, one panel a step.

    Args:
        rows (list[dict]): Rows of the report.
        path (Path): PNG to write.
    """
    bars = {}
    for row in rows:  # the paper's other comparisons come last
        bars.setdefault(tuple(row[key] for key in BAR_OF), row)
    quantities = dict(ratio='time', memory_ratio='peak memory')
    panels = dict.fromkeys(
        (row['step'], key)
        for key in quantities
        for row in bars.values()
        if row.get(key)
    )
    groups = {}
    for case, shape, _, variant in bars:
        groups.setdefault((case, shape), {})[variant] = None
    colors = colors_of(dict.fromkeys(row['variant'] for row in rows))
    height = BAR * (sum(map(len, groups.values())) + 2 * len(groups)) + 1.2
    columns = max(len(panels), 1)
    figure, axes = subplots(columns, 2.2 + 2.4 * columns, height, sharey=True)
    for axis, (step, key) in zip(axes, panels):
        place, ticks = 0, []
        for group, variants in groups.items():
            for offset, variant in enumerate(variants):
                value = bars.get((*group, step, variant), {}).get(key)
                if value:
                    bar = axis.barh(place + offset, value, 0.9, color=colors[variant])
                    axis.bar_label(bar, fmt='%.3g', padding=2, fontsize=7)
            ticks.append(place + (len(variants) - 1) / 2)
            place += len(variants) + 1
        axis.set_yticks(ticks, [f'{case}\n{size(shape)}' for case, shape in groups])
        axis.set_title(f"{step}:\n{quantities[key]} over the baseline's", fontsize=9)
        axis.tick_params(labelsize=8)
        axis.axvline(1, color='black', linewidth=0.8)
        axis.set_ylim(place - 0.5, -1)
        axis.margins(x=0.2)
    legend_below(figure, colors, num_columns=min(len(colors), 4))
    save(figure, path)


def plot_profiles(profiles, path):
    """Draws a bar for every step, divided among its operators.

    Args:
        profiles (list[dict]): See :func:`operators.shares`.
        path (Path): PNG to write.
    """
    parts = shares(profiles)
    colors = dict(colors_of(parts[0]), **{OTHERS: 'lightgrey'})
    height = 0.42 * len(profiles) + 0.22 * len(colors) + 1.2
    figure, (axis,) = subplots(1, 9, height)
    for place, (found, part) in enumerate(zip(profiles, parts)):
        start = 0
        for name, color in colors.items():
            milliseconds = 1e3 * total_seconds(found) * part[name]
            axis.barh(place, milliseconds, left=start, color=color)
            start += milliseconds
    labels = [f'{x["variant"]}, {x["step"]}' for x in profiles]
    axis.set_yticks(range(len(profiles)), labels, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel('own time of the operators, ms', fontsize=8)
    axis.tick_params(axis='x', labelsize=8)
    titles = dict.fromkeys(f'{x["case"]}, {size(x["shape"])}' for x in profiles)
    axis.set_title('; '.join(titles), fontsize=9)
    legend_below(figure, colors, num_columns=2)
    save(figure, path)


def colors_of(names):
    """A color for each name; those of many names repeat."""
    palette = 'tab10' if len(names) <= 10 else 'tab20'
    return dict(zip(names, cycle(plt.get_cmap(palette).colors)))


def subplots(num, width, height, **options):
    """A figure, and axes beside each other; sizes in inches."""
    figure, axes = plt.subplots(
        1, num, squeeze=False, figsize=(width, height), layout='constrained', **options
    )
    return figure, axes[0]


def legend_below(figure, colors, num_columns):
    """Names of colors, below all panels."""
    patches = [plt.Rectangle((0, 0), 1, 1, color=color) for color in colors.values()]
    where = dict(loc='outside lower center', ncols=num_columns)
    figure.legend(patches, colors, fontsize=8, **where)


def save(figure, path):
    """Writes a figure with few colors; equal figures give equal files."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=DPI)
    plt.close(figure)
    with Image.open(drawn) as picture:
        picture.convert('RGB').quantize(COLORS).save(path, optimize=True)
