"""Write docs/model_zoo.md, and tables of docs/weights.md and configs/*/README.md, from
the metafiles and the configs.

A table of a README stands between two comments, the first with its contents:

    <!-- models: FOLDER METHOD[,METHOD] DATA -->
    <!-- end of models -->

FOLDER is one of configs/. METHOD is how the names of its configs begin, such as
mask-rcnn, or in1k for classifiers. DATA is a data set as the metafiles call it, such as
COCO. docs/printed/ has the papers' figures beside our counts.
"""

import ast
import re
from collections import Counter
from pathlib import Path

import yaml

from mmlinattn import public_weights

ROOT = Path(__file__).resolve().parents[2]
TABLE = re.compile(
    r'(<!-- models: (\S+) (\S+) (\S+) -->\n).*?(<!-- end of models -->)', re.S
)
CLASSIFIER = re.compile('_(in1k|imagenette)')
# a metafile's names of results, its own ones and the papers'
METRICS = {'Top 1 Accuracy': 'top-1', **public_weights.METRICS}
# titles, units, and keys of metafiles and of docs/printed
COUNTS = (
    ('parameters, M (paper)', 1e6, 'Parameters', 'params'),
    ('GFLOPs (paper)', 1e9, 'FLOPs', 'flops'),
)
# Licences of the repositories that publish weights, by a part of their addresses.
LICENCES = yaml.safe_load((ROOT / 'configs/licenses.yml').read_bytes())
WEIGHTS = Path('docs/weights.md')
FILES = re.compile(r'(<!-- files -->\n).*?(<!-- end of files -->)', re.S)
ZOO = Path('docs/model_zoo.md')
ZOO_PAGE = """# Model zoo

<!-- python docs/site/model_zoo.py writes this page -->
## Which to take

{choices}

These models have public weights: use them without a training. The figures are the
papers', and sizes are in millions of parameters. Weights without a license may be used
only as their authors allow; [Weights](weights.md#what-configs-start-from) has the
license of each file.

- **Fast and accurate**: [one plot](benchmarks/accuracy.md) shows time on a large image
  and published accuracy of backbones, beside EfficientViT, Swin and ResNet-50.
- **Without a GPU**: `efficientvit-b1`, or `softpp-micro-linear`, for [photos of your
  own](use/own_data.md#without-a-gpu).
- **Most public weights** of whole models: {most}.

## All models

**Only softpp-micro-linear was trained here**, on Imagenette: [a small
model](../configs/soft/README.md#a-small-model). AP (of boxes / of masks), mIoU and
top-1 accuracy of all others are those of the linked papers. [Weights](weights.md)
are public ones of the whole model, or of the backbone that it starts from. Parameters
and FLOPs are counted on our models. A FLOP is a multiply-accumulate; those of SOFT's
inverse, which depend on how it is computed, are left out of detectors and segmentors.
Images have 224 × 224 pixels where the name says nothing else, on COCO 800 × 1280, on
ADE20K 512 × 2048, on Cityscapes 1024 × 2048, on DOTA 1024 × 1024.

Recipes and what the papers say of sizes are in the pages of
[SOFT and SOFT++](../configs/soft/README.md), [ELFATT](../configs/elfatt/README.md),
[AttnScale and FeatScale](../configs/antioversmoothing/README.md),
[other attentions](../configs/attention_zoo/README.md),
[MLLA](../configs/mlla/README.md), [VSSD](../configs/vssd/README.md),
[EfficientViT](../configs/efficientvit/README.md),
[RAVLT](../configs/ravlt/README.md),
[MAViT](../configs/mavit/README.md), [ViT^3](../configs/vittt/README.md) and
[rotated detectors](../configs/rotated/README.md).

<!-- sortable -->
{rows}
<!-- end of sortable -->
"""
# Titles of the choices: task and data.
TASKS = {
    'boxes': ('object detection', 'COCO'),
    'boxes and outlines': ('instance segmentation', 'COCO'),
    'a class for each pixel': ('semantic segmentation', 'ADE20K'),
    'a class for each photo': ('classification', 'ImageNet-1k'),
}


def read_metafiles():
    """Return entries of the metafiles that the index names, by the folder of their
    configs."""
    index = yaml.safe_load((ROOT / 'model-index.yml').read_bytes())
    metafiles = [ROOT / path for path in index['Import']]
    return {x.parent.name: yaml.safe_load(x.read_bytes())['Models'] for x in metafiles}


def read_printed():
    """Return rows of docs/printed by the name of their config, all figures as text."""
    return {
        row['config']: dict(row, source=f'[Table {table["Table"]}]({paper["Address"]})')
        for path in ROOT.glob('docs/printed/*.yml')
        for paper in [yaml.safe_load(path.read_bytes())]
        for table in paper['Tables']
        for row in table['Rows']
    }


def method_of(name):
    """Return the beginning of a config's name, or in1k for a classifier."""
    return 'in1k' if CLASSIFIER.search(name) else name.partition('_')[0]


def metrics_of(entry):
    """Return the papers' results of an entry, by their name in a table."""
    return {
        METRICS[name]: value
        for result in entry.get('Results', [])
        for name, value in result['Metrics'].items()
    }


def cells_of(entry, printed):
    """Return cells of the row of a config, by their title."""
    name, meta = entry['Name'], entry['Metadata']
    row = printed.get(name, {})
    cells = {'config': f'[{name}](../../{entry["Config"]})'}
    if 'Epochs' in meta:
        cells['length'] = f'{meta["Epochs"]} epochs'
    else:
        cells['length'] = f'{meta["Iterations"] // 1000}k iterations'
    cells['batch'] = meta['Batch Size']
    # papers print FLOPs of detectors and segmentors for images of other sizes
    for title, unit, key, paper in COUNTS[: 2 if '_in1k' in name else 1]:
        if key in meta:
            text = f'{meta[key] / unit:.2f}'
            cells[title] = f'{text} ({row[paper]})' if paper in row else text
    cells.update((f'{x} (paper)', value) for x, value in metrics_of(entry).items())
    if row:
        cells['source of the figures'] = row['source']
    return cells


def render_table(entries, printed):
    """Return a table in Markdown, with one row for each config of a metafile's
    entries."""
    rows = [cells_of(entry, printed) for entry in entries]
    titles = dict.fromkeys(title for row in rows for title in row)
    titles = sorted(titles, key='source of the figures'.__eq__)  # it comes last
    lines = [titles, ['---'] * len(titles)]
    lines += [[row.get(title, '') for title in titles] for row in rows]
    table = '\n'.join(f'| {" | ".join(map(str, cells))} |' for cells in lines)
    weights = [f'[{x["Name"]}]({x["Weights"]})' for x in entries if 'Weights' in x]
    public = f'Public weights: {", ".join(weights)}.'
    none = (
        'None of these models has weights that a program can download. [Weights]'
        '(../../docs/weights.md#what-configs-start-from) lists what is public.'
    )
    return f'{table}\n\n{public if weights else none}'


def render_page(text, metafiles, printed):
    """Return a page with its tables written anew."""

    def replace(match):
        start, family, methods, data, end = match.groups()
        entries = [
            entry
            for entry in metafiles[family]
            if method_of(entry['Name']) in methods.split(',')
            and entry['Metadata']['Training Data'] == data
        ]
        return f'{start}{render_table(entries, printed)}\n{end}'

    return TABLE.sub(replace, text)


def task_of(entry):
    """Return the task of a config's model, in the words of the zoo."""
    method, data = method_of(entry['Name']), entry['Metadata']['Training Data']
    if method == 'in1k':
        return 'classification'
    if method in ('upernet', 'efficientvit-head') or data == 'ADE20K':
        return 'semantic segmentation'
    if data == 'DOTA':
        return 'rotated detection'
    return 'instance segmentation' if 'mask' in method else 'object detection'


def start_of(path):
    """Return the ``pretrained`` of a config, its own or that of its bases, or None."""
    names = {
        ast.unparse(node.targets[0]): node.value
        for node in ast.parse(path.read_text('utf-8')).body
        if isinstance(node, ast.Assign)
    }
    if 'pretrained' in names:
        return ast.literal_eval(names['pretrained'])
    bases = ast.literal_eval(names.get('_base_', ast.Constant([])))
    bases = [bases] if isinstance(bases, str) else bases
    starts = [start_of(path.parent / base) for base in bases if '::' not in base]
    return next(filter(None, starts), None)


def zoo_row(entry, printed):
    """Return cells of a config in the zoo."""
    name, meta = entry['Name'], entry['Metadata']
    figures = ' / '.join(map(str, metrics_of(entry).values()))
    if name in printed:
        figures = f'[{figures}]{printed[name]["source"].partition("]")[2]}'
    weights, start = entry.get('Weights'), start_of(ROOT / entry['Config'])
    link = f'[backbone]({start})' if start else 'none'
    return [
        f'[{name}](../{entry["Config"]})',
        task_of(entry),
        meta['Training Data'],
        entry['In Collection'],
        backbone_of(entry),
        f'[model]({weights})' if weights else link,
        licence_of(weights or start) if weights or start else '',
        figures,
        f'{meta["Parameters"] / 1e6:.1f}',
        f'{meta["FLOPs"] / 1e9:,.1f}' if 'FLOPs' in meta else '',
    ]


def choices_table(entries):
    """Return the most accurate and the smallest model of each task whose own weights
    are public, so that it needs no training, and the most accurate whose weights have a
    license."""
    titles = ['you want', 'most accurate', 'most accurate under a license', 'smallest']
    lines = [titles, ['---'] * 4]
    for title, task_and_data in TASKS.items():
        public = [
            entry
            for entry in entries
            if (task_of(entry), entry['Metadata']['Training Data']) == task_and_data
            and 'Weights' in entry
            and metrics_of(entry)
        ]
        licensed = [x for x in public if licence_of(x['Weights']) != 'none']
        picked = [
            max(public, key=accuracy_of),
            max(licensed, key=accuracy_of, default=None),
            min(public, key=lambda entry: entry['Metadata']['Parameters']),
        ]
        lines.append([title, *map(choice_of, picked)])
    return '\n'.join(f'| {" | ".join(cells)} |' for cells in lines)


def accuracy_of(entry):
    """Return the first of an entry's results."""
    return next(iter(metrics_of(entry).values()))


def choice_of(entry):
    """Return a model, or None, as a cell of the choices."""
    if entry is None:
        return 'none'
    figures = ', '.join(f'{name} {value}' for name, value in metrics_of(entry).items())
    millions = f'{entry["Metadata"]["Parameters"] / 1e6:.1f} M'
    link = f'[{entry["Name"]}](../{entry["Config"]})'
    return f'{link}: {figures}, {millions}'


def licence_of(address):
    """Return the license of the repository that publishes weights."""
    return next(x for part, x in LICENCES.items() if part in address)


def most_weights(entries):
    """Return the families with the most public weights of whole models, with their
    numbers."""
    families = Counter(x['In Collection'] for x in entries if 'Weights' in x)
    return ', '.join(f'{family} ({n})' for family, n in families.most_common(4))


def zoo_page(metafiles, printed):
    """docs/model_zoo.md; models with weights, their own or a start, come first."""
    entries = [entry for part in metafiles.values() for entry in part]
    entries.sort(key=lambda x: ('Weights' not in x, not start_of(ROOT / x['Config'])))
    titles = ['model', 'task', 'data', 'method', 'backbone', 'weights', 'license']
    titles += ['AP, mIoU or top-1', 'parameters, M', 'GFLOPs']
    lines = [titles, ['---'] * len(titles)]
    lines += [zoo_row(entry, printed) for entry in entries]
    return ZOO_PAGE.format(
        choices=choices_table(entries),
        most=most_weights(entries),
        rows='\n'.join(f'| {" | ".join(cells)} |' for cells in lines),
    )


def backbone_of(entry):
    """Return the backbone in the name of a config."""
    name = entry['Name']
    classifies = CLASSIFIER.search(name)
    return name.partition('_')[0 if classifies else 2].partition('_')[0]


def files_table(metafiles):
    """Return all public weights that configs and metafiles name, with what they are
    of."""
    models, starts = {}, {}
    for entry in (entry for part in metafiles.values() for entry in part):
        if 'Weights' in entry:
            link = f'[{entry["Name"]}](../{entry["Config"]})'
            models.setdefault(entry['Weights'], link)
        start = start_of(ROOT / entry['Config'])
        if start:
            starts.setdefault(start, {})[backbone_of(entry)] = None
    lines = [['file', 'license', 'model', 'backbones that start from it'], ['---'] * 4]
    for address in sorted({**starts, **models}, key=file_name):
        backbones = ', '.join(f'`{x}`' for x in starts.get(address, ()))
        link = f'[{file_name(address)}]({address})'
        lines.append([link, licence_of(address), models.get(address, ''), backbones])
    return '\n'.join(f'| {" | ".join(cells)} |' for cells in lines)


def file_name(address):
    """Return the name of the file at an address."""
    return address.rpartition('/')[2]


def render_all():
    """Return text of all pages with tables, by their path from the root of the
    repository."""
    metafiles, printed = read_metafiles(), read_printed()
    weights = (ROOT / WEIGHTS).read_text('utf-8')
    pages = {
        path.relative_to(ROOT): render_page(path.read_text('utf-8'), metafiles, printed)
        for path in sorted(ROOT.glob('configs/*/README.md'))
    }
    weights = FILES.sub(rf'\1{files_table(metafiles)}\n\2', weights)
    return {ZOO: zoo_page(metafiles, printed), WEIGHTS: weights, **pages}


if __name__ == '__main__':
    for path, text in render_all().items():
        (ROOT / path).write_text(text, 'utf-8')
