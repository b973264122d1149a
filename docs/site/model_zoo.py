"""Write the tables of configs/*/README.md and docs/model_zoo.md from the metafiles.

A table stands between two comments, of which the first says what is in it:

    <!-- models: FOLDER METHOD[,METHOD] DATA -->
    <!-- end of models -->

FOLDER is one of configs/. METHOD is how the names of its configs begin, such as
mask-rcnn, or in1k for classifiers. DATA is a data set as the metafiles call it, such as
COCO. What the papers print beside our counts is in docs/printed/.
"""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
TABLE = re.compile(
    r'(<!-- models: (\S+) (\S+) (\S+) -->\n).*?(<!-- end of models -->)', re.S
)
METRICS = {
    'Paper Top 1 Accuracy': 'top-1',
    'Paper box AP': 'box AP',
    'Paper mask AP': 'mask AP',
    'Paper mIoU': 'mIoU',
}
# titles, units, and keys of metafiles and of docs/printed
COUNTS = (
    ('parameters, M (paper)', 1e6, 'Parameters', 'params'),
    ('GFLOPs (paper)', 1e9, 'FLOPs', 'flops'),
)
ZOO = Path('docs/model_zoo.md')


def read_metafiles():
    """Entries of the metafiles that the index names, by the folder of their configs."""
    index = yaml.safe_load((ROOT / 'model-index.yml').read_bytes())
    metafiles = [ROOT / path for path in index['Import']]
    return {x.parent.name: yaml.safe_load(x.read_bytes())['Models'] for x in metafiles}


def read_printed():
    """Rows of docs/printed by the name of their config, all figures as text."""
    return {
        row['config']: dict(row, source=f'[Table {table["Table"]}]({paper["Address"]})')
        for path in ROOT.glob('docs/printed/*.yml')
        for paper in [yaml.safe_load(path.read_bytes())]
        for table in paper['Tables']
        for row in table['Rows']
    }


def method_of(name):
    """How the name of a config begins, or in1k for a classifier."""
    return 'in1k' if '_in1k' in name else name.partition('_')[0]


def metrics_of(entry):
    """The papers' results of an entry, by their name in a table."""
    return {
        METRICS[name]: value
        for result in entry.get('Results', [])
        for name, value in result['Metrics'].items()
    }


def cells_of(entry, printed, folder):
    """Cells of the row of a config, by their title."""
    name, meta = entry['Name'], entry['Metadata']
    row = printed.get(name, {})
    cells = {'config': f'[{name}]({folder}{entry["Config"]})'}
    if 'Epochs' in meta:
        cells['length'] = f'{meta["Epochs"]} epochs'
    else:
        cells['length'] = f'{meta["Iterations"] // 1000}k iterations'
    cells['batch'] = meta['Batch Size']
    for title, unit, key, paper in COUNTS:
        if key in meta:
            text = f'{meta[key] / unit:.2f}'
            cells[title] = f'{text} ({row[paper]})' if paper in row else text
    cells.update((f'{x} (paper)', value) for x, value in metrics_of(entry).items())
    if row:
        cells['source of the figures'] = row['source']
    return cells


def render_table(entries, printed, folder):
    """A table in Markdown, with one row for each config of a metafile's entries."""
    rows = [cells_of(entry, printed, folder) for entry in entries]
    titles = dict.fromkeys(title for row in rows for title in row)
    titles = sorted(titles, key='source of the figures'.__eq__)  # it comes last
    lines = [titles, ['---'] * len(titles)]
    lines += [[row.get(title, '') for title in titles] for row in rows]
    table = '\n'.join(f'| {" | ".join(map(str, cells))} |' for cells in lines)
    weights = [f'[{x["Name"]}]({x["Weights"]})' for x in entries if 'Weights' in x]
    public = f'Public weights: {", ".join(weights)}.'
    none = 'There are no public weights for these.'
    return f'{table}\n\n{public if weights else none}'


def render_page(text, metafiles, printed, folder):
    """A page with its tables written anew."""

    def replace(match):
        start, family, methods, data, end = match.groups()
        entries = [
            entry
            for entry in metafiles[family]
            if method_of(entry['Name']) in methods.split(',')
            and entry['Metadata']['Training Data'] == data
        ]
        return f'{start}{render_table(entries, printed, folder)}\n{end}'

    return TABLE.sub(replace, text)


def zoo_page(metafiles):
    """docs/model_zoo.md without its rows."""
    parts = [
        '# Model zoo\n\n`python docs/site/model_zoo.py` writes this page from the '
        'metafiles. Parameters and FLOPs are\ncounted on our models; what a paper '
        'prints is in brackets. Accuracies are the papers'
        "', and\nno model was trained here.\n"
    ]
    for family, entries in metafiles.items():
        parts.append(f'## {family}\n')
        groups = dict.fromkeys(
            (e['Metadata']['Training Data'], method_of(e['Name'])) for e in entries
        )
        for data, method in groups:
            parts.append(
                f'### {method}, {data}\n\n<!-- models: {family} {method} {data} -->\n'
                '<!-- end of models -->\n'
            )
    return '\n'.join(parts)


def render_all():
    """Text of all pages with tables, by their path from the root of the repository."""
    metafiles, printed = read_metafiles(), read_printed()
    pages = {ZOO: zoo_page(metafiles)}
    for path in sorted(ROOT.glob('configs/*/README.md')):
        pages[path.relative_to(ROOT)] = path.read_text('utf-8')
    return {
        path: render_page(text, metafiles, printed, '../' * (len(path.parts) - 1))
        for path, text in pages.items()
    }


if __name__ == '__main__':
    for path, text in render_all().items():
        (ROOT / path).write_text(text, 'utf-8')
