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
STYLE = [*figures.STYLE, {'savefig.dpi': 180, 'axes.prop_cycle': CYCLE}]
WIDTH = 4.4  # inches, a column of a page on a phone
BAR = 0.17  # inches, of all steps of a variant
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
    """Write :func:`ratios_figure`."""
    save(ratios_figure(rows), path)


def ratios_figure(rows):
    """Draw bars of the ratios of time and memory, each case at its first size; a
    lighter bar is a later step."""
    quantities = {
        key: text
        for key, text in dict(ratio='time', memory_ratio='peak memory').items()
        if any(row.get(key) for row in rows)
    }
    groups = bars_by_group(rows)
    steps = list(dict.fromkeys(row['step'] for row in rows))
    names = dict.fromkeys(row['variant'] for row in rows)
    colors = dict(zip(names, cycle(COLORS)))
    height = BAR * (sum(map(len, groups.values())) + len(groups)) + 0.8
    figure = Figure((WIDTH, height * len(quantities)), layout='constrained')
    panels = figure.subplots(len(quantities), 1, squeeze=False)[:, 0]
    for axis, (key, quantity) in zip(panels, quantities.items()):
        draw_bars(axis, groups, steps, key, colors)
        shades = ' (dark), '.join(steps) + (' (light)' if len(steps) > 1 else '')
        axis.set_title(f"{quantity} over the baseline's\n{shades}")
    figure.draw_without_rendering()
    for axis in panels:
        make_room_for_labels(axis)
    return figure


def bars_by_group(rows):
    """Return rows by case and size, then by variant, then by step."""
    sizes, groups = {}, {}
    for row in rows:
        shape = tuple(row['shape'])
        if sizes.setdefault(row['case'], shape) == shape:
            variants = groups.setdefault((row['case'], shape), {})
            # the paper's other comparisons come last
            variants.setdefault(row['variant'], {}).setdefault(row['step'], row)
    return groups


def draw_bars(axis, groups, steps, key, colors):
    """Draw a bar for each step of a variant, and its label behind the longest one."""
    place, ticks = 0, []
    for variants in groups.values():
        ticks.append(place + (len(variants) - 1) / 2)
        for variant, of_steps in variants.items():
            values = [of_steps.get(step, {}).get(key) or 0 for step in steps]
            thickness = 0.9 / len(steps)
            for i, value in enumerate(values):
                offset = (i - (len(steps) - 1) / 2) * thickness
                color = colors[variant], 1 / (i + 1)
                axis.barh(place + offset, value, thickness, color=color)
            text = ', '.join(f'{value:.3g}' for value in values if value)
            label = axis.annotate(
                f'{variant}: {text}' if text else '',
                (max(values), place),
                (2, 0),
                textcoords='offset points',
                va='center',
                fontsize=7,
                bbox=dict(facecolor='white', alpha=0.7, edgecolor='none', pad=0.5),
            )
            # the axis makes room for it, not the figure
            label.set_in_layout(False)
            place += 1
        place += 1
    axis.set_yticks(ticks, [f'{case}\n{size(shape)}' for case, shape in groups])
    axis.grid(visible=False, axis='y')
    axis.axvline(1, color='black', linewidth=0.8)
    axis.set_ylim(place - 0.5, -1)


def make_room_for_labels(axis):
    """Set the limits of an axis so that the labels behind its bars are inside."""
    width = axis.get_window_extent().width
    most = max((bar.get_width() for bar in axis.patches), default=1)
    for label in axis.texts:
        rest = width - label.get_window_extent().width - LABEL_GAP
        most = max(most, label.xy[0] * width / max(rest, width / 10))
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
