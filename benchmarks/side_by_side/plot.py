"""Plots of what was measured."""

import re
from math import prod
from typing import NamedTuple

from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from PIL import Image

from mmlinattn_tools import figures
from mmlinattn_tools.figures import COLORS, layer_title, one_legend, plot_range, styles

from .cases import size
from .report import growth

BAR_OF = ('case', 'shape', 'step', 'variant')
BAR = 0.16  # inches
FEW = 12  # points that all have a tick
SHADES = 128  # of a PNG
STYLE = [*figures.STYLE, {'savefig.dpi': 90}]
HATCHES = ('', '////', '....', 'xxxx')


class Panel(NamedTuple):
    """One set of axes.

    Attributes:
        title (str): Above it.
        xlabel (str): Below it.
        ylabel (str): Beside it.
        curves (dict): By name (xs, one list of ys per seed).
        xscale (str): 'linear' or 'log'.
        yscale (str): 'linear' or 'log'.
    """

    title: str
    xlabel: str
    ylabel: str
    curves: dict
    xscale: str = 'linear'
    yscale: str = 'linear'


@style.context(STYLE)
def plot_lines(panels, path, legend=None):
    """Draws curves: the mean over seeds as a line, least to greatest as a band.

    Args:
        panels (list[Panel]): From left to right; a name looks the same in all, and
            layers have colors by depth.
        path (Path): Figure to write.
        legend (str, optional): Title of the legend.
    """
    names = list(dict.fromkeys(name for panel in panels for name in panel.curves))
    looks = styles(names, ordered=all(layer_title(name) != name for name in names))
    rows = -(-len(looks) // len(panels) // 2)
    figure, axes = subplots(len(panels), 4.4 * len(panels), 3.6 + 0.2 * rows)
    for axis, panel in zip(axes, panels):
        for name, (xs, seeds) in panel.curves.items():
            look = dict(looks[name], markevery=max(len(xs) // 10, 1))
            plot_range(axis, xs, list(zip(*seeds)), layer_title(name), **look)
        axis.set(xscale=panel.xscale, yscale=panel.yscale, title=panel.title)
        axis.set(xlabel=panel.xlabel, ylabel=panel.ylabel)
        places = sorted({x for xs, _ in panel.curves.values() for x in xs})
        if panel.xscale == 'log' and len(places) <= FEW:
            mark_points(axis, places)
    one_legend(figure, 2 * len(panels), title=legend)
    save(figure, path)


def plot_growth(rows, path):
    """Draws memory against the number of tokens, one panel a case and step.

    Args:
        rows (list[dict]): Rows of the report.
        path (Path): Figure to write.
    """
    curves, exponents = {}, {}
    for curve in growth(rows):
        title, name = f'{curve["case"]}, {curve["step"]}', curve['variant']
        if curve['exponent'] is not None:
            mebibytes = [count / 2**20 for count in curve['bytes']]
            curves.setdefault(title, {})[name] = curve['tokens'], [mebibytes]
            exponents.setdefault(name, {})[title] = f'$N^{{{curve["exponent"]:.2f}}}$'
    labels = {
        name: f'{name}: ' + ', '.join(found.get(title, '–') for title in curves)
        for name, found in exponents.items()
    }
    what = 'tokens $N$', 'peak memory of a step, MiB'
    panels = [
        Panel(title, *what, {labels[x]: of[x] for x in of}, 'log', 'log')
        for title, of in curves.items()
    ]
    plot_lines(panels, path, legend='Growth of each, panels from left to right')


def plot_times(rows, path):
    """Draws time against the number of pixels, of the case with most sizes, forward;
    nothing below three sizes.

    Args:
        rows (list[dict]): Rows of the report.
        path (Path): Figure to write.
    """
    curves = {}
    for row in rows:
        if row['step'] == 'forward' and 'seconds' in row:
            of_case = curves.setdefault(row['case'], {})
            point = prod(row['shape'][2:]), row['seconds']
            of_case.setdefault(row['variant'], set()).add(point)
    case = max(curves, key=lambda x: min(map(len, curves[x].values())), default=None)
    if case is None or min(map(len, curves[case].values())) < 3:
        return
    found = {}
    for name, points in curves[case].items():
        xs, ys = zip(*sorted(points))
        found[name] = xs, [ys]
    panel = Panel(f'{case}, forward', 'pixels', 'seconds', found, 'log', 'log')
    plot_lines([panel], path)


@style.context(STYLE)
def plot_ratios(rows, path):
    """Draws bars of the ratios of time and memory, one panel a step.

    Args:
        rows (list[dict]): Rows of the report.
        path (Path): Figure to write.
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
    looks = bar_styles(row['variant'] for row in rows)
    height = BAR * (sum(map(len, groups.values())) + 2 * len(groups)) + 1.2
    columns = max(len(panels), 1)
    figure, axes = subplots(columns, 2.2 + 2.4 * columns, height, sharey=True)
    for axis, (step, key) in zip(axes, panels):
        place, ticks = 0, []
        for group, variants in groups.items():
            for offset, variant in enumerate(variants):
                value = bars.get((*group, step, variant), {}).get(key)
                if value:
                    bar = axis.barh(place + offset, value, 0.9, **looks[variant])
                    axis.bar_label(bar, fmt='%.3g', padding=2, fontsize=7)
            ticks.append(place + (len(variants) - 1) / 2)
            place += len(variants) + 1
        names = [f'{in_maths(case)}\n{size(shape)}' for case, shape in groups]
        axis.set_yticks(ticks, names)
        axis.set_title(f"{step}:\n{quantities[key]} over the baseline's")
        axis.grid(visible=False, axis='y')
        axis.axvline(1, color='black', linewidth=0.8)
        axis.set_ylim(place - 0.5, -1)
        axis.margins(x=0.2)
    bar_legend(figure, looks, min(len(looks), 4))
    save(figure, path)


def mark_points(axis, xs):
    """Ticks at points of a logarithmic axis that are not too close."""
    ticks = []
    for x in xs:
        if not ticks or x > 1.6 * ticks[-1]:
            ticks.append(x)
    axis.set_xticks(ticks, [f'{x:,}' for x in ticks])
    axis.set_xticks([], minor=True)


def in_maths(name):
    """A case with its product set as one."""
    return re.sub(r'^P(\^T)? ([VY])\b', r'$P\1 \2$', name)


def bar_styles(names):
    """Looks of bars by their names: other hatches where colors run out."""
    found = {}
    for i, name in enumerate(dict.fromkeys(names)):
        color, hatch = COLORS[i % len(COLORS)], HATCHES[i // len(COLORS) % len(HATCHES)]
        found[name] = dict(facecolor=color, hatch=hatch, edgecolor='white', linewidth=0)
    return found


def subplots(num, width, height, **options):
    """A figure, and axes beside each other; sizes in inches."""
    figure = Figure((width, height), layout='constrained')
    return figure, figure.subplots(1, num, squeeze=False, **options)[0]


def bar_legend(figure, looks, num_columns):
    """Names of bars, below all panels."""
    patches = [Patch(**look) for look in looks.values()]
    figure.legend(patches, looks, loc='outside lower center', ncols=num_columns)


def save(figure, path):
    """Writes a figure, a PNG with few colors; equal figures give equal files."""
    figures.save(figure, path)
    if path.suffix == '.png':
        with Image.open(path) as picture:
            small = picture.convert('RGB').quantize(SHADES)
        small.save(path, optimize=True)
