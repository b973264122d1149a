"""Write the table and the plot of docs/benchmarks/accuracy.md: time of a prediction at
800 x 1344 beside the accuracy that each model's authors publish.

Times and memory are those of the suite backbones of benchmarks/run.py. Accuracies are
those of docs/benchmarks/accuracies.yml, or of the metafile of a config that it names.
Of a model that several libraries have, the fastest form is shown.
"""

import json
import re
import sys
from pathlib import Path

import yaml
from matplotlib import style

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / 'benchmarks'), str(Path(__file__).parent)]

import common  # noqa: F401
from model_zoo import metrics_of, read_metafiles, read_printed
from side_by_side import plot
from side_by_side.registry import DETECTION
from side_by_side.report import markdown

FOLDER = ROOT / 'docs/benchmarks'
PAGE = FOLDER / 'accuracy.md'
PLOT = FOLDER / 'accuracy.png'
ACCURACIES = FOLDER / 'accuracies.yml'
MEASURED = FOLDER / 'backbones_cpu.json'
TABLE = re.compile(r'(<!-- accuracy -->\n).*?(<!-- end of accuracy -->)', re.S)
OURS, OTHERS = plot.COLORS[1], plot.COLORS[0]
# Names that stand left of their point or below it, where the right side is taken.
LEFT = {'EfficientViT-B3', 'MAViT-T', 'SOFT++-T'}
BELOW = {'CSWin-T-ELFATT', 'MAViT-T', 'MLLA-T', 'Swin-T-ELFATT'}


def read_accuracies():
    """By model, its published top-1 in percent and a link to its source."""
    entries = [entry for family in read_metafiles().values() for entry in family]
    metrics = {entry['Name']: metrics_of(entry) for entry in entries}
    printed = read_printed()
    accuracies = {}
    for model, published in yaml.safe_load(ACCURACIES.read_text('utf-8')).items():
        name = published.get('config')
        if name is None:
            accuracies[model] = published['top1'], f'[source]({published["source"]})'
        else:
            accuracies[model] = metrics[name]['top-1'], printed[name]['source']
    return accuracies


def model_of(row):
    """Name of a row's model, without the library."""
    return row['variant'].partition(' (')[0]


def is_ours(row):
    """Return whether a row's model is built by this package."""
    return ' (' not in row['variant']


def fastest_forms(rows):
    """Return predictions of one image of 800 x 1344, a row for each model, by time."""
    fastest = {}
    for row in rows:
        at_detection_size = tuple(row['shape']) == (1, 3, *DETECTION)
        is_model = row['case'] == 'tiny backbones' and 'seconds' in row
        if row['step'] == 'forward' and at_detection_size and is_model:
            earlier = fastest.setdefault(model_of(row), row)
            if row['seconds'] < earlier['seconds']:
                fastest[model_of(row)] = row
    return sorted(fastest.values(), key=lambda row: row['seconds'])


def table(rows, accuracies):
    """Return lines of a Markdown table."""
    lines = []
    for row in rows:
        top1, source = accuracies.get(model_of(row), ('not known', '-'))
        name = f'**{row["variant"]}**' if is_ours(row) else row['variant']
        memory = f'{row["bytes"] / 2**20:.0f}'
        lines.append([name, f'{row["seconds"]:.2f}', memory, str(top1), source])
    titles = ['model', 'seconds', 'memory, MiB', 'published top-1, %', 'source']
    return markdown(titles, lines)


@style.context(plot.STYLE)
def draw(rows, accuracies, path):
    """Draw accuracy against time; models without a published accuracy stand on the
    lower edge."""
    figure, (axis,) = plot.subplots(1, 7.2, 4.8)
    known = [
        accuracies[model_of(row)][0] for row in rows if model_of(row) in accuracies
    ]
    edge = min(known) - 1
    for row in rows:
        model = model_of(row)
        is_known = model in accuracies
        top1 = accuracies[model][0] if is_known else edge
        color = OURS if is_ours(row) else OTHERS
        axis.plot(row['seconds'], top1, 'o' if is_known else 'v', color=color, ms=6)
        axis.annotate(
            model if is_known else f'{model} (accuracy not known)',
            (row['seconds'], top1),
            (-5 if model in LEFT else 5, -12 if model in BELOW else 4),
            textcoords='offset points',
            ha='right' if model in LEFT else 'left',
            fontsize=8,
        )
    axis.set(xscale='log', xlabel='seconds for one image of 800 × 1344, on a CPU')
    axis.set(ylabel='published top-1 on ImageNet, %', ylim=(edge - 0.3, max(known) + 1))
    ticks = [0.25, 0.5, 1, 2, 4]
    axis.set_xticks(ticks, [f'{tick:g}' for tick in ticks])
    axis.set_xticks([], minor=True)
    for color, label in ((OURS, 'built by mmlinattn'), (OTHERS, 'other libraries')):
        axis.plot([], [], 'o', color=color, label=label)
    axis.legend(loc='upper left')
    plot.save(figure, path)


def render():
    """Return the page with the table of what is measured now."""
    measured = json.loads(MEASURED.read_text('utf-8'))
    text = table(fastest_forms(measured['rows']), read_accuracies())
    text += f'\n\nMeasured on: {measured["machine"]}.\n'
    page = PAGE.read_text('utf-8')
    return TABLE.sub(lambda match: f'{match[1]}{text}{match[2]}', page)


def main():
    PAGE.write_text(render(), 'utf-8')
    measured = json.loads(MEASURED.read_text('utf-8'))
    draw(fastest_forms(measured['rows']), read_accuracies(), PLOT)


if __name__ == '__main__':
    main()
