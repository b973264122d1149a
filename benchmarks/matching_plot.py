"""Draws the results of matching.py.

python benchmarks/matching_plot.py docs/claims/matching.json docs/claims/matching.png
"""

import argparse
import json
from pathlib import Path
from statistics import mean
from typing import Any

import common  # noqa: F401
from matplotlib import style
from matplotlib.axes import Axes
from side_by_side.plot import COLORS, STYLE, save, subplots

GUESS = 1 / 6
# title of a panel, and by the label of a dot the test and its number of pairs
PANELS = {
    '14 × 14 tokens, by pairs of regions': {
        f'{pairs} pairs': ('14', str(pairs)) for pairs in (6, 12, 24, 48)
    },
    '48 pairs, by tokens of a map': {
        '14 × 14': ('14', '48'),
        '28 × 28': ('28', '48'),
        '56 × 56': ('56', '48'),
        '14 × 14, noise': ('14, noise', '48'),
    },
}


def shares(row: dict[str, Any], test: str, pairs: str) -> list[float]:
    """Return shares of right tokens of an attention's seeds."""
    return [tests[test][pairs] for tests in row['seeds'].values()]


def draw_panel(axis: Axes, rows: dict[str, Any], dots: dict[str, Any]) -> None:
    """Draw the means of each attention, and the range of its seeds."""
    for (label, place), color in zip(dots.items(), COLORS):
        for i, row in enumerate(rows.values()):
            values = shares(row, *place)
            axis.plot((min(values), max(values)), (i, i), '-', color=color, linewidth=1)
            text = label if i == 0 else None
            axis.plot(mean(values), i, 'o', color=color, label=text, alpha=0.8)
    axis.axvline(GUESS, color='black', linewidth=0.8, linestyle=':')
    axis.set(xlim=(0.1, 1.03), xlabel='share of right tokens')
    axis.legend(loc='upper left', fontsize=7)


@style.context(STYLE)
def plot(results: dict[str, Any], path: Path) -> None:
    """Draw a row for each attention that has been tested, the best one on top."""
    rows = {k: row for k, row in results['attentions'].items() if row['seeds']}
    order = sorted(rows, key=lambda name: -mean(shares(rows[name], '14', '48')))
    rows = {name: rows[name] for name in order}
    height = 0.22 * len(rows) + 1.2
    figure, axes = subplots(len(PANELS), 8.4, height, sharey=True)
    for axis, (title, dots) in zip(axes, PANELS.items()):
        draw_panel(axis, rows, dots)
        axis.set_title(title)
    axes[0].set_yticks(range(len(rows)), [*rows])
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    save(figure, path)


def main(argv: Any = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('results', type=Path)
    parser.add_argument('out', type=Path)
    args = parser.parse_args(argv)
    plot(json.loads(args.results.read_text('utf-8')), args.out)


if __name__ == '__main__':
    main()
