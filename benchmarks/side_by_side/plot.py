"""Plots of what was measured."""

import re
from math import prod

from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from PIL import Image

from mmlinattn_tools import figures
from mmlinattn_tools.figures import COLORS, one_legend, styles

from .cases import size
from .report import growth

BAR_OF = ('case', 'shape', 'step', 'variant')
BAR = 0.16  # inches
SHADES = 128
STYLE = [*figures.STYLE, {'savefig.dpi': 90}]
HATCHES = ('', '////', '....', 'xxxx')


@style.context(STYLE)
def plot_lines(panels, path, xlabel, ylabel, legend=None):
    """Draws curves on logarithmic axes.

    Args:
        panels (dict): By title, from left to right, points (x, y) of curves by name; a
            name looks the same in all.
        path (Path): Figure to write.
        xlabel (str): Below each panel.
        ylabel (str): Beside it.
        legend (str, optional): Title of the legend.
    """
    looks = styles(name for curves in panels.values() for name in curves)
    rows = -(-len(looks) // len(panels) // 2)
    figure, axes = subplots(len(panels), 4.4 * len(panels), 3.6 + 0.2 * rows)
    for axis, (title, curves) in zip(axes, panels.items()):
        for name, points in curves.items():
            axis.plot(*zip(*points), label=name, **looks[name])
        axis.set(xscale='log', yscale='log', title=title, xlabel=xlabel, ylabel=ylabel)
        mark_points(axis, sorted({x for points in curves.values() for x, _ in points}))
    one_legend(figure, 2 * len(panels), title=legend)
    save(figure, path)


def plot_growth(rows, path):
    """Draws memory against the number of tokens, one panel a case and step.

    Args:
        rows (list[dict]): Rows of the report.
        path (Path): Figure to write.
    """
    panels, exponents = {}, {}
    for curve in growth(rows):
        title, name = f'{curve["case"]}, {curve["step"]}', curve['variant']
        if curve['exponent'] is not None:
            points = [(n, x / 2**20) for n, x in zip(curve['tokens'], curve['bytes'])]
            panels.setdefault(title, {})[name] = points
            exponents.setdefault(name, {})[title] = f'$N^{{{curve["exponent"]:.2f}}}$'
    labels = {
        name: f'{name}: ' + ', '.join(found.get(title, '–') for title in panels)
        for name, found in exponents.items()
    }
    panels = {title: {labels[x]: of[x] for x in of} for title, of in panels.items()}
    legend = 'Growth of each, panels from left to right'
    plot_lines(panels, path, 'tokens $N$', 'peak memory of a step, MiB', legend)


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
    found = {name: sorted(points) for name, points in curves[case].items()}
    plot_lines({f'{case}, forward': found}, path, 'pixels', 'seconds')


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
    with Image.open(path) as picture:
        small = picture.convert('RGB').quantize(SHADES)
    small.save(path, optimize=True)
