"""Write the tables of docs/flops.md: parameters and FLOPs of our configs beside the
papers'.

A table stands between two comments, of which the first names it. The models are those
of docs/flops.yml and docs/printed; tests/test_analysis/test_paper_flops.py tests them.
"""

import copy
import re
from functools import lru_cache
from pathlib import Path

import torch
import yaml

from mmlinattn.commands import get_flops
from mmlinattn.engine.preflight import build_model
from mmlinattn.utils import load_config
from mmlinattn.utils.log import quiet

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs/flops.md'
TABLE = re.compile(r'(<!-- flops: (.+?) -->\n).*?(<!-- end of flops -->)', re.S)

# Titles of columns, and the kinds of a FlopCount that they leave out.
COLUMNS = dict(
    params=('parameters, M', ()),
    flops=('GFLOPs', ()),
    no_softmax=('without softmax-attention products', ('softmax_attention',)),
    no_inverse=('without pseudo-inverses', ('pseudo_inverse',)),
    no_norm=('without normalization and resizing', ('norm', 'resampling')),
)


def read_rows(table):
    """Return rows of a table by name: those from docs/printed, and its own."""
    rows = {}
    for source in table.get('From', ()):
        path = ROOT / f'docs/printed/{source["paper"]}.yml'
        for printed in yaml.safe_load(path.read_text('utf-8'))['Tables']:
            if printed['Table'] != source['table']:
                continue
            for row in printed['Rows']:
                if row['config'].endswith(source.get('ending', '')):
                    larger = ', 384²' if row['config'].endswith('-384px') else ''
                    name = f'{source.get("before", "")}{row["row"]}{larger}'
                    rows[name] = dict(row, shape=source.get('shape'))
    return {**rows, **{row['row']: row for row in table.get('Rows', ())}}


DATA = yaml.safe_load((ROOT / 'docs/flops.yml').read_text('utf-8'))
TABLES = {
    table['Title']: dict(table, Rows=read_rows(table)) for table in DATA['Tables']
}


@lru_cache(None)
def config_of(name):
    (path,) = ROOT.glob(f'configs/*/{name}.py')
    return path.relative_to(ROOT), load_config(str(path))


@lru_cache(None)
def measure(title, name):
    """Return number of parameters and FlopCount of a row, as get_flops counts them."""
    row = TABLES[title]['Rows'][name]
    cfg = copy.deepcopy(config_of(row['config'])[1])
    options = row.get('options', {})
    cfg.merge_from_dict({f'model.{key}': value for key, value in options.items()})
    # RoI heads have to run: their operations have no meta kernels
    with torch.device('cpu' if 'roi_head' in cfg.model else 'meta'):
        model = build_model(cfg)
    shape = tuple(row.get('shape') or get_flops.default_shape(cfg))
    num_params = sum(parameter.numel() for parameter in model.parameters())
    return num_params, get_flops.count(model, shape)


def compare(title, name):
    """Return columns of a row: (our value, printed value, True if they agree to the
    last printed digit) by the column's key."""
    table = TABLES[title]
    num_params, flops = measure(title, name)
    columns = {}
    for key, source in table['Columns'].items():
        text = table['Rows'][name].get(source, '')
        decimals = len(text.partition('.')[2])
        value = (flops.total() - sum(map(flops.by_kind().get, COLUMNS[key][1]))) / 1e9
        value = num_params / 1e6 if key == 'params' else value
        columns[key] = value, text, text in ('', f'{value:.{decimals}f}')
    return columns


def option_text(key, value):
    if isinstance(value, list):
        value = '...' if isinstance(value[0], dict) else tuple(value)
    return f'`{key}={value}`'.replace(', ', ',')


def cells_of(title, name):
    """Return cells of a row: model, options, columns, difference."""
    row = TABLES[title]['Rows'][name]
    options = (option_text(*option) for option in row.get('options', {}).items())
    cells = [f'[{name}](../{config_of(row["config"])[0]})', ' '.join(options)]
    differences = []
    for key, (value, text, agrees) in compare(title, name).items():
        cell = f'{value:.{2 if key == "params" else 3}f}'
        cells.append(f'{cell} ({text})' if text else cell)
        if not agrees:
            differences.append(f'{COLUMNS[key][0]}: {value - float(text):+.2f}')
    return [*cells, '; '.join(differences)]


def render(text):
    """Return the page with its tables written anew."""

    def replace(match):
        start, title, end = match.groups()
        table = TABLES[title]
        titles = [COLUMNS[key][0] for key in table['Columns']]
        head = ['model', 'options', *titles, 'ours - printed']
        rows = [head, ['---'] * len(head), *(cells_of(title, x) for x in table['Rows'])]
        lines = (f'| {" | ".join(cells)} |\n' for cells in rows)
        return f'{start}{"".join(lines)}{end}'

    return TABLE.sub(replace, text)


if __name__ == '__main__':
    with quiet():
        PAGE.write_text(render(PAGE.read_text('utf-8')), 'utf-8')
