"""Plots of what was measured."""

from itertools import cycle
from math import prod

from cycler import cycler
from matplotlib import style
from matplotlib.figure import Figure
from PIL import Image

from mmlinattn.cli import figures

from .cases import size

# that the color-blind can tell apart; dashes vary when they run out
COLORS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000']
CYCLE = cycler(linestyle=['-', '--', ':', '-.']) * cycler(color=COLORS)
STYLE = [*figures.STYLE, {'savefig.dpi': 90, 'axes.prop_cycle': CYCLE}]
BAR = 0.16  # inches
LABEL_GAP = 14  # pixels, on both sides of a label together


@style.context(STYLE)
def plot_times(rows, path):
    """Draw time against the number of pixels, on logarithmic axes, of the case with
    most sizes, forward, and its variants that have all of them; nothing below three
    sizes."""
    curves = {}
    for row in rows:
        if row['step'] == 'forward' and 'seconds' in row:
            of_case = curves.setdefault(row['case'], {})
            point = prod(row['shape'][2:]), row['seconds']
            of_case.setdefault(row['variant'], set()).add(point)
    sizes = {case: max(map(len, lines.values())) for case, lines in curves.items()}
    case = max(sizes, key=sizes.get, default=None)
    if sizes.get(case, 0) < 3:
        return
    lines = {
        name: points
        for name, points in curves[case].items()
        if len(points) == sizes[case]
    }
    figure, (axis,) = subplots(1, 4.4, 3.6 + 0.2 * -(-len(lines) // 2))
    for name, points in lines.items():
        axis.plot(*zip(*sorted(points)), label=name, marker='o')
    axis.set(xscale='log', yscale='log', title=f'{case}, forward')
    axis.set(xlabel='pixels', ylabel='seconds')
    ticks = {pixels for points in lines.values() for pixels, _ in points}
    axis.set_xticks([*ticks], [f'{pixels:,}' for pixels in ticks])
    axis.set_xticks([], minor=True)
    figure.legend(loc='outside lower center', ncols=2)
    save(figure, path)


@style.context(STYLE)
def plot_ratios(rows, path):
    """Draw bars of the ratios of time and memory, one panel a step."""
    quantities = dict(ratio='time', memory_ratio='peak memory')
    panels = dict.fromkeys(
        (row['step'], key) for key in quantities for row in rows if row.get(key)
    )
    groups, bars = {}, {}
    for row in rows:
        group, variant = (row['case'], tuple(row['shape'])), row['variant']
        groups.setdefault(group, {})[variant] = None
        # the paper's other comparisons come last
        bars.setdefault((group, variant, row['step']), row)
    colors = dict(zip(dict.fromkeys(row['variant'] for row in rows), cycle(COLORS)))
    height = BAR * (sum(map(len, groups.values())) + len(groups)) + 1.2
    columns = max(len(panels), 1)
    figure, axes = subplots(columns, 2.2 + 2.4 * columns, height, sharey=True)
    for axis, (step, key) in zip(axes, panels):
        place, ticks = 0, []
        for group, variants in groups.items():
            for offset, variant in enumerate(variants):
                if value := bars.get((group, variant, step), {}).get(key):
                    bar = axis.barh(place + offset, value, 0.9, color=colors[variant])
                    text = f'{variant}: {value:.3g}'
                    (label,) = axis.bar_label(bar, [text], padding=2, fontsize=7)
                    # the axis makes room for it, not the figure
                    label.set_in_layout(False)
            ticks.append(place + (len(variants) - 1) / 2)
            place += len(variants) + 1
        axis.set_yticks(ticks, [f'{case}\n{size(shape)}' for case, shape in groups])
        axis.set_title(f"{step}:\n{quantities[key]} over the baseline's")
        axis.grid(visible=False, axis='y')
        axis.axvline(1, color='black', linewidth=0.8)
        axis.set_ylim(place - 0.5, -1)
    figure.draw_without_rendering()
    for axis in axes:
        make_room_for_labels(axis)
    save(figure, path)


def make_room_for_labels(axis):
    """Set the limits of an axis so that the labels behind its bars are inside."""
    width = axis.get_window_extent().width
    most = 0
    for bar, label in zip(axis.patches, axis.texts):
        rest = width - label.get_window_extent().width - LABEL_GAP
        most = max(most, bar.get_width() * width / max(rest, width / 10))
    axis.set_xlim(0, most or 1)


def subplots(num, width, height, **options):
    """Return a figure, and axes beside each other; sizes in inches."""
    figure = Figure((width, height), layout='constrained')
    return figure, figure.subplots(1, num, squeeze=False, **options)[0]


def save(figure, path):
    """Write a figure, a PNG with few colors; equal figures give equal files."""
    figures.save(figure, path)
    with Image.open(path) as picture:
        small = picture.convert('RGB').quantize(128)
    small.save(path, optimize=True)
