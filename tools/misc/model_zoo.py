"""Write the tables of configs/*/README.md and docs/model_zoo.md from the metafiles.

A table stands between two comments, of which the first says what is in it:

    <!-- models: FOLDER METHOD[,METHOD] DATA -->
    <!-- end of models -->

FOLDER is one of configs/. METHOD is how the names of its configs begin, such as
mask-rcnn, or in1k for classifiers. DATA is a data set as the metafiles call it, such as
COCO. What the papers print beside our counts is in docs/printed/.

example:
  python tools/misc/model_zoo.py --check
"""

import difflib
import re
import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mmlinattn_tools.cli import Parser, exit_with

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
ZOO = Path('docs/model_zoo.md')


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    parser.add_argument(
        '--check',
        action='store_true',
        help='write nothing; print what differs, and exit with 1 if anything does',
    )
    return parser.parse_args(argv)


def read_metafiles(root):
    """What the metafiles say, in the order of the index.

    Args:
        root (Path): Folder of model-index.yml.

    Returns:
        dict[str, list[dict]]: Entries by the folder of their configs.

    Raises:
        FileNotFoundError: If a metafile that the index names is not there.
    """
    index = yaml.safe_load((root / 'model-index.yml').read_text('utf-8'))
    return {
        Path(path).parent.name: yaml.safe_load((root / path).read_text('utf-8'))[
            'Models'
        ]
        for path in index['Import']
    }


def read_printed(root):
    """What the papers print, by the name of the config.

    Args:
        root (Path): Root of the repository.

    Returns:
        dict[str, dict]: Rows of docs/printed, all figures as text, with the table
        and the paper's address.

    Raises:
        ValueError: If two rows are of one config.
    """
    printed = {}
    for path in sorted(root.glob('docs/printed/*.yml')):
        paper = yaml.safe_load(path.read_text('utf-8'))
        for table in paper['Tables']:
            for row in table['Rows']:
                name = row['config']
                if name in printed:
                    raise ValueError(f'{path}: config={name!r} has two rows')
                printed[name] = dict(
                    row, table=table['Table'], address=paper['Address']
                )
    return printed


def method_of(name):
    """How the name of a config begins, or in1k for a classifier."""
    return 'in1k' if '_in1k' in name else name.partition('_')[0]


def metrics_of(entry):
    """The papers' results of an entry, by their name in a table."""
    found = {}
    for result in entry.get('Results', []):
        for name, value in result['Metrics'].items():
            found[METRICS[name]] = value
    return found


def with_printed(count, decimals, printed):
    """Our count, and in brackets what the paper prints."""
    text = f'{count:.{decimals}f}'
    return f'{text} ({printed})' if printed else text


def render_table(entries, printed, folder):
    """A table with one row for each config.

    Args:
        entries (list[dict]): Entries of a metafile.
        printed (dict[str, dict]): What :func:`read_printed` returns.
        folder (str): Path from the page to the root, such as '../../'.

    Returns:
        str: Lines of Markdown.
    """
    titles = [x for x in METRICS.values() if any(x in metrics_of(e) for e in entries)]
    flops = any('FLOPs' in entry['Metadata'] for entry in entries)
    weights = [f'[{x["Name"]}]({x["Weights"]})' for x in entries if 'Weights' in x]
    head = ['config', 'length', 'batch', 'parameters, M (paper)']
    head += ['GFLOPs (paper)'] * flops + [f'{x} (paper)' for x in titles]
    head += ['source of the figures'] * any(e['Name'] in printed for e in entries)
    lines = [head, ['---'] * len(head)]
    for entry in entries:
        name, meta = entry['Name'], entry['Metadata']
        row = printed.get(name, {})
        length = (
            f'{meta["Epochs"]} epochs'
            if 'Epochs' in meta
            else f'{meta["Iterations"] // 1000}k iterations'
        )
        cells = [f'[{name}]({folder}{entry["Config"]})', length, meta['Batch Size']]
        cells.append(with_printed(meta['Parameters'] / 1e6, 2, row.get('params')))
        if flops:
            cells.append(with_printed(meta['FLOPs'] / 1e9, 2, row.get('flops')))
        found = metrics_of(entry)
        cells += [found.get(title, '') for title in titles]
        if 'source of the figures' in head:
            cells.append(f'[Table {row["table"]}]({row["address"]})' if row else '')
        lines.append(cells)
    table = '\n'.join(f'| {" | ".join(map(str, cells))} |' for cells in lines)
    public = f'Public weights: {", ".join(weights)}.'
    none = 'There are no public weights for these.'
    return f'{table}\n\n{public if weights else none}'


def render_page(text, metafiles, printed, folder):
    """A page with its tables written anew.

    Raises:
        ValueError: If a marker asks for what no entry is.
    """

    def replace(match):
        start, family, methods, data, end = match.groups()
        entries = [
            entry
            for entry in metafiles.get(family, [])
            if method_of(entry['Name']) in methods.split(',')
            and entry['Metadata']['Training Data'] == data
        ]
        if not entries:
            raise ValueError(f'{start.strip()}: no metafile has such models')
        return f'{start}{render_table(entries, printed, folder)}\n{end}'

    return TABLE.sub(replace, text)


def zoo_page(metafiles):
    """docs/model_zoo.md without its rows."""
    parts = [
        '# Model zoo\n\n`python tools/misc/model_zoo.py` writes this page from the '
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


def render_all(root):
    """All pages with tables.

    Args:
        root (Path): Root of the repository.

    Returns:
        dict[Path, str]: Their text by their path from the root.

    Raises:
        FileNotFoundError: If a metafile is missing.
        ValueError: If a marker or a row of docs/printed is wrong.
    """
    metafiles, printed = read_metafiles(root), read_printed(root)
    pages = {ZOO: zoo_page(metafiles)}
    for path in sorted(root.glob('configs/*/README.md')):
        pages[path.relative_to(root)] = path.read_text('utf-8')
    return {
        path: render_page(text, metafiles, printed, '../' * (len(path.parts) - 1))
        for path, text in pages.items()
    }


def main(argv=None):
    args = parse_args(argv)
    try:
        pages = render_all(ROOT)
    except (OSError, ValueError) as error:
        exit_with(error)
    differ = False
    for path, text in pages.items():
        file = ROOT / path
        old = file.read_text('utf-8') if file.is_file() else ''
        if old == text:
            continue
        differ = True
        if args.check:
            lines = old.splitlines(), text.splitlines()
            print('\n'.join(difflib.unified_diff(*lines, str(path), 'metafiles', n=0)))
        else:
            file.write_text(text, 'utf-8')
            print(path)
    if args.check and differ:
        sys.exit(1)


if __name__ == '__main__':
    main()
