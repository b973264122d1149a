"""Write the tables of docs/attentions.md, which compares the attentions.

A table stands between two comments, of which the first names it. Equations and other
facts are those of docs/attentions.yml, public weights those of the metafiles, times and
memory those of the suite zoo of benchmarks/run.py, shares of matched tokens those of
benchmarks/matching.py. Parameters and FLOPs are counted
here, on the models of that suite.
"""

import json
import re
import sys
from pathlib import Path

import torch
import yaml

from mmlinattn.analysis import count_flops
from mmlinattn.models import SwinTransformer
from mmlinattn.registry import MODELS

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / 'benchmarks'), str(Path(__file__).parent)]

from model_zoo import read_metafiles
from quoted import interval
from side_by_side.models import ZOO
from side_by_side.registry import CLASSIFICATION, DETECTION
from side_by_side.report import markdown

PAGE = ROOT / 'docs/attentions.md'
FACTS = ROOT / 'docs/attentions.yml'
MEASURED = ROOT / 'docs/benchmarks/zoo_cpu.json'
MATCHED = ROOT / 'docs/claims/matching.json'
# test and number of pairs, by the title of their column
MATCHES = {
    '6 pairs': ('14', '6'),
    '12 pairs': ('14', '12'),
    '24 pairs': ('14', '24'),
    '48 pairs': ('14', '48'),
    '48 pairs, 28 × 28': ('28', '48'),
    '48 pairs, 56 × 56': ('56', '48'),
    '48 pairs, noise': ('14, noise', '48'),
}
TABLE = re.compile(
    r'(<!-- attentions: (\w+) -->\n).*?(<!-- end of attentions -->)', re.S
)
SHAPES = (CLASSIFICATION, DETECTION)
WEIGHTS = {'ImageNet-1k': 'classifiers', 'COCO': 'detectors', 'ADE20K': 'segmentors'}


def build(name):
    """Return the Swin-T of an attention, without its values."""
    with torch.device('meta'):
        return SwinTransformer(**ZOO[name])


def kind_of(name):
    """Return the attention's class."""
    return type(build(name).stages[0].blocks[0].attn)


def link(address):
    """Return an address by its last part."""
    return f'[{address.rpartition("/")[2]}]({address})'


def equations(facts):
    """Return the equation and cost of each attention."""
    cells = [[name, fact['equation'], fact['cost']] for name, fact in facts.items()]
    return markdown(['attention', 'equation', 'cost'], cells)


def needs(facts):
    """Return parts of each attention, its support, and public weights."""
    entries = [x for part in read_metafiles().values() for x in part]
    papers = {
        x['Name']: x.get('Paper')
        for path in ROOT.glob('configs/*/metafile.yml')
        for x in yaml.safe_load(path.read_bytes())['Collections']
    }
    lines = []
    for name, fact in facts.items():
        of = fact.get('collection')
        public = [x for x in entries if x['In Collection'] == of and 'Weights' in x]
        data = {entry['Metadata']['Training Data'] for entry in public}
        weights = ', '.join(word for key, word in WEIGHTS.items() if key in data)
        kind = kind_of(name).__name__
        lines.append(
            [
                name,
                f'[{kind}](api/attentions.md)',
                fact['positions'],
                fact['learned'],
                # the tests export every registered attention
                'yes' if kind in MODELS.module_dict else 'no',
                weights or fact.get('weights', 'none'),
                link(fact.get('paper') or papers[of]),
            ]
        )
    titles = ['attention', 'module', 'positions', 'learned', 'exported']
    return markdown([*titles, 'public weights', 'paper'], lines)


def sizes(facts):
    """Return parameters, FLOPs, time and memory in Swin-T."""
    measured = json.loads(MEASURED.read_text('utf-8'))
    rows = {(x['variant'], tuple(x['shape'][2:])): x for x in measured['rows']}
    lines = []
    for name in facts:
        model = build(name)
        line = [name, f'{sum(p.numel() for p in model.parameters()) / 1e6:.2f}']
        for shape in SHAPES:
            with torch.device('meta'):
                flops = count_flops(model, torch.zeros(1, 3, *shape))
            steps = flops.by_kind()['pseudo_inverse']
            line.append(f'{flops.total() / 1e9:.1f}')
            if steps:
                line[-1] += f' ({(flops.total() - steps) / 1e9:.1f})'
        for shape in SHAPES:
            row = rows.get((name, shape), {})
            line.append(f'{1000 * row["seconds"]:,.0f}' if 'seconds' in row else '-')
            line.append(f'{row["bytes"] / 2**20:,.0f}' if 'bytes' in row else '-')
        lines.append(line)
    places = ['at 224 × 224', 'at 800 × 1344']
    titles = ['attention', 'parameters, M', *(f'GFLOPs {place}' for place in places)]
    titles += [f'{what} {place}' for place in places for what in ('ms', 'MiB')]
    return f'{markdown(titles, lines)}\n\nMeasured on: {measured["machine"]}.'


def matching(_facts):
    """Return percents of tokens that are given the right value."""
    lines = []
    for name, row in json.loads(MATCHED.read_text('utf-8'))['attentions'].items():
        seeds = row['seeds'].values()
        if len(seeds) < 2:  # no interval
            continue
        line = [name]
        for test, pairs in MATCHES.values():
            middle, half = interval([100 * tests[test][pairs] for tests in seeds])
            line.append(f'{middle:.1f} ± {half:.1f}')
        lines.append(line)
    lines.sort(key=lambda line: -float(line[4].partition(' ')[0]))
    return markdown(['attention', *MATCHES], lines)


def render():
    """Return the page with its tables written anew."""
    facts = yaml.safe_load(FACTS.read_text('utf-8'))
    make = dict(equations=equations, needs=needs, sizes=sizes, matching=matching)

    def replace(match):
        start, name, end = match.groups()
        return f'{start}{make[name](facts)}\n{end}'

    return TABLE.sub(replace, PAGE.read_text('utf-8'))


if __name__ == '__main__':
    PAGE.write_text(render(), 'utf-8')
