"""Plots of what was measured, in small PNG files."""

from itertools import cycle

import matplotlib

from .cases import size
from .operators import OTHERS, shares, total_seconds
from .report import growth

matplotlib.use('Agg')
from matplotlib import pyplot as plt

BAR_OF = ('case', 'shape', 'step', 'variant')
# Inches of a bar, and resolution.
BAR = 0.16
DPI = 90


def colors_of(names):
    """A color for each name; those of many names repeat."""
    palette = 'tab10' if len(names) <= 10 else 'tab20'
    return dict(zip(names, cycle(plt.get_cmap(palette).colors)))


def plot_ratios(rows, path):
    """Bars of the ratios of time and memory, one panel a step.

    Args:
        rows (list[dict]): Rows of the report.
        path (Path): Where to write.
    """
    bars = {}
    for row in rows:  # the paper's other comparisons come last
        bars.setdefault(tuple(row[key] for key in BAR_OF), row)
    rows = list(bars.values())
    panels = [
        (step, key)
        for key in ('ratio', 'memory_ratio')
        for step in dict.fromkeys(row['step'] for row in rows)
    ]
    panels = [
        (step, key)
        for step, key in panels
        if any(row['step'] == step and row.get(key) for row in rows)
    ]
    groups = list(dict.fromkeys((row['case'], row['shape']) for row in rows))
    variants = list(dict.fromkeys(row['variant'] for row in rows))
    colors = colors_of(variants)
    num_bars = sum(
        len({row['variant'] for row in rows if (row['case'], row['shape']) == group})
        for group in groups
    )
    height = BAR * (num_bars + 2 * len(groups)) + 1.2
    figure, axes = plt.subplots(
        1,
        max(len(panels), 1),
        sharey=True,
        squeeze=False,
        figsize=(2.2 + 2.4 * max(len(panels), 1), height),
        layout='constrained',
    )
    for axis, (step, key) in zip(axes[0], panels):
        draw_bars(axis, rows, groups, step, key, colors)
        quantity = 'time' if key == 'ratio' else 'peak memory'
        axis.set_title(f"{step}:\n{quantity} over the baseline's", fontsize=9)
    legend_below(figure, colors, num_columns=min(len(variants), 4), fontsize=8)
    figure.savefig(path, dpi=DPI)
    plt.close(figure)


def legend_below(figure, colors, num_columns, fontsize):
    """Names of colors, below all panels."""
    figure.legend(
        [plt.Rectangle((0, 0), 1, 1, color=color) for color in colors.values()],
        colors,
        loc='outside lower center',
        ncols=num_columns,
        fontsize=fontsize,
    )


def draw_bars(axis, rows, groups, step, key, colors):
    """Bars of one step and one key, a group for each case."""
    place, ticks = 0, []
    for group in groups:
        members = [
            row
            for row in rows
            if (row['case'], row['shape']) == group and row['step'] == step
        ]
        start = place
        for row in members:
            value = row.get(key)
            if value:
                axis.barh(place, value, height=0.9, color=colors[row['variant']])
                axis.annotate(
                    f'{value:.3g}',
                    (value, place),
                    (2, 0),
                    textcoords='offset points',
                    va='center',
                    fontsize=7,
                    bbox=dict(facecolor='white', edgecolor='none', pad=0.5),
                )
            place += 1
        ticks.append((start + place - 1) / 2)
        place += 1
    axis.set_yticks(ticks, [f'{case}\n{size(shape)}' for case, shape in groups])
    axis.tick_params(labelsize=8)
    axis.axvline(1, color='black', linewidth=0.8)
    axis.set_ylim(place - 0.5, -1)
    axis.margins(x=0.2)


def plot_growth(rows, path):
    """Lines of memory against the number of tokens, one panel a case and step.

    Args:
        rows (list[dict]): Rows of the report.
        path (Path): Where to write.
    """
    curves = growth(rows)
    panels = list(dict.fromkeys((x['case'], x['step']) for x in curves))
    variants = list(dict.fromkeys(row['variant'] for row in rows))
    colors = colors_of(variants)
    figure, axes = plt.subplots(
        1,
        len(panels),
        squeeze=False,
        figsize=(4.2 * len(panels), 4.8),
        layout='constrained',
    )
    for axis, panel in zip(axes[0], panels):
        for curve in curves:
            if (curve['case'], curve['step']) != panel or not curve['tokens']:
                continue
            label = curve['variant']
            if curve['exponent'] is not None:
                label += f', N^{curve["exponent"]:.2f}'
            axis.loglog(
                curve['tokens'],
                [count / 2**20 for count in curve['bytes']],
                'o-',
                markersize=3,
                color=colors[curve['variant']],
                label=label,
            )
        tokens = sorted(
            {n for x in curves if (x['case'], x['step']) == panel for n in x['tokens']}
        )
        # labels at doublings have room
        ticks = [n for n in tokens if n in [tokens[0] * 2**i for i in range(20)]]
        axis.set_xticks(ticks, [f'{n:,}' for n in ticks])
        axis.xaxis.set_minor_formatter('')
        axis.tick_params(labelsize=8)
        axis.set_title(', '.join(panel), fontsize=9)
        axis.set_xlabel('tokens N', fontsize=9)
        axis.grid(alpha=0.3, which='both', linewidth=0.5)
        axis.legend(fontsize=7)
    axes[0][0].set_ylabel('peak memory of a step, MiB', fontsize=9)
    figure.savefig(path, dpi=DPI)
    plt.close(figure)


def plot_profiles(profiles, path):
    """A bar for every step, divided among its operators.

    Args:
        profiles (list[dict]): See :func:`operators.shares`.
        path (Path): Where to write.
    """
    parts = shares(profiles)
    names = list(parts[0])
    colors = dict(colors_of(names), **{OTHERS: 'lightgrey'})
    figure, axis = plt.subplots(
        figsize=(9, 0.42 * len(profiles) + 0.22 * len(names) + 1.2),
        layout='constrained',
    )
    for place, (found, part) in enumerate(zip(profiles, parts)):
        milliseconds = 1e3 * total_seconds(found)
        start = 0
        for name in names:
            axis.barh(place, part[name] * milliseconds, left=start, color=colors[name])
            start += part[name] * milliseconds
    axis.set_yticks(
        range(len(profiles)),
        [f'{x["variant"]}, {x["step"]}' for x in profiles],
        fontsize=8,
    )
    axis.invert_yaxis()
    axis.set_xlabel('own time of the operators, ms', fontsize=8)
    axis.tick_params(axis='x', labelsize=8)
    axis.set_title(
        '; '.join(dict.fromkeys(f'{x["case"]}, {size(x["shape"])}' for x in profiles)),
        fontsize=9,
    )
    legend_below(figure, colors, num_columns=2, fontsize=7)
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
