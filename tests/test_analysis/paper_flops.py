"""Parameters and FLOPs of our configs beside those that the papers print.

test_paper_flops.py tests them. To write the page docs/flops.md:

    python tests/test_analysis/paper_flops.py
"""

import copy
import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Callable, NamedTuple

import torch

from mmlinattn.utils import load_config

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs/flops.md'


def load_module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


get_flops = load_module(ROOT / 'tools/analysis_tools/get_flops.py')
zoo = load_module(ROOT / 'tools/misc/model_zoo.py')


class Column(NamedTuple):
    """A quantity in a table.

    Attributes:
        title (str): What it is, and its unit.
        decimals (int): How many the page has.
        value (callable): Takes the number of parameters and a FlopCount.
    """

    title: str
    decimals: int
    value: Callable


class Row(NamedTuple):
    """A model.

    Attributes:
        config (str): Its config, in configs/.
        printed (tuple[str]): What is printed of it in the columns of its table;
            '' where we know of nothing.
        options (dict): What to override in the config's ``model``.
        shape (tuple[int], optional): Height and width of the image. Default:
            that of the config's test pipeline.
    """

    config: str
    printed: tuple = ()
    options: dict = {}
    shape: tuple = None


class Table(NamedTuple):
    """Models that are printed, and counted, in one way.

    Attributes:
        text (str): What to know of it.
        columns (tuple[Column]): What is counted.
        rows (dict[str, Row]): The models by name.
    """

    text: str
    columns: tuple
    rows: dict


def gflops_without(*kinds):
    """What counts GFLOPs but for some of the kinds of a FlopCount."""

    def value(num_params, flops):
        return (flops.total() - sum(map(flops.by_kind().get, kinds))) / 1e9

    return value


PARAMS = Column('parameters, M', 2, lambda num_params, flops: num_params / 1e6)
FLOPS = Column('GFLOPs', 3, gflops_without())
NO_SOFTMAX = Column(
    'without softmax-attention products', 3, gflops_without('softmax_attention')
)
NO_INVERSE = Column('without pseudo-inverses', 3, gflops_without('pseudo_inverse'))
NO_NORM = Column(
    'without normalization and resizing', 3, gflops_without('norm', 'resampling')
)

COCO, ADE20K = (800, 1280), (512, 2048)


def elfatt_rows(table, title, shape=None, ending=''):
    """Rows of a table of the ELFATT paper, from docs/printed.

    Args:
        table (str): Its number.
        title (str): What the name of a row begins with.
        shape (tuple[int], optional): Height and width of the image.
        ending (str): How the configs' names end.
    """
    rows = {}
    for name, row in zoo.read_printed(ROOT).items():
        if row['table'] != table or not name.endswith(ending):
            continue
        printed = [row.get(key, '') for key in ('params', 'flops', 'flops_fused')]
        (path,) = ROOT.glob(f'configs/*/{name}.py')
        larger = ', 384²' if name.endswith('-384px') else ''
        rows[f'{title}{row["row"]}{larger}'] = Row(
            str(path.relative_to(ROOT / 'configs')), tuple(printed), shape=shape
        )
    return rows


ELFATT = {
    **elfatt_rows('I', ''),
    'CSWin-T24181-ELFATT, blocks of 196': Row(
        'elfatt/cswin-t-elfatt_in1k.py',
        ('20', '4.56', '4.13'),
        {'backbone.block_sizes': 196},
    ),
}
DOWNSTREAM = {
    **elfatt_rows('VI', 'Mask R-CNN, ', COCO, '_1x_coco'),
    **elfatt_rows('VII', 'UperNet, ', ADE20K),
}


def variant(*printed, **options):
    """CSWin-T-ELFATT with other options, blocks of 196 tokens if not given."""
    options = {'block_sizes': 196, **options}
    return Row(
        'elfatt/cswin-t-elfatt_in1k.py',
        ('20', *printed),
        {f'backbone.{key}': value for key, value in options.items()},
    )


def levels(printed, *attention):
    """CSWin-T with a list of attentions, one entry a stage."""
    return variant(*printed, block_sizes=None, attention=list(attention))


LINEAR = dict(type='ELFATT', block_size=196)
SOFTMAX = dict(type='SoftmaxAttention', lepe=True)
VARIANTS = {
    'blocks of 196': variant('4.56', '4.13'),
    'blocks of 49': variant('4.37', '4.13', block_sizes=49),
    'blocks of 49, 49, 196': variant('4.44', '4.13', block_sizes=(49, 49, 196)),
    'no LePE': variant('4.54', '4.12', lepe=False),
    'c₁ : c₂ = 0 : 1': variant('4.76', '4.09', split_ratio=0.0),
    'c₁ : c₂ = 0.25 : 0.75': variant('4.65', '4.10', split_ratio=0.25),
    'c₁ : c₂ = 0.75 : 0.25': variant('4.48', '4.18', split_ratio=0.75),
    'c₁ : c₂ = 1 : 0': variant('4.35', '4.17', split_ratio=1.0),
    'in no level': levels(('7.60', '4.09'), SOFTMAX, SOFTMAX, SOFTMAX, SOFTMAX),
    'in level 1': levels(('5.17', '4.10'), LINEAR, SOFTMAX, SOFTMAX, SOFTMAX),
    'in levels 1, 2': levels(('4.63', '4.12'), LINEAR, LINEAR, SOFTMAX, SOFTMAX),
    'in levels 1-3, alternating in 3': levels(
        ('4.56', '4.13'), LINEAR, LINEAR, [SOFTMAX, LINEAR], SOFTMAX
    ),
    'in levels 1-3': levels(('4.48', '4.15'), LINEAR, LINEAR, LINEAR, SOFTMAX),
    'in all levels': levels(
        ('4.48', '4.15'), LINEAR, LINEAR, LINEAR, dict(LINEAR, block_size=49)
    ),
}

AGENT_SWIN = 'attention_zoo/swin-t-agent_in1k.py'
AGENT_CSWIN = 'attention_zoo/cswin-t-agent_in1k.py'
AGENT = {
    'Agent-Swin-T': Row(AGENT_SWIN, ('29', '', '4.5')),
    'Agent-Swin-S': Row(AGENT_SWIN, ('50', '', '8.7'), {'backbone.arch': 'small'}),
    'Agent-Swin-B': Row(
        AGENT_SWIN,
        ('88', '', '15.4'),
        {'backbone.arch': 'base', 'head.in_channels': 1024},
    ),
    'Agent-CSWin-T': Row(AGENT_CSWIN, ('21', '', '4.3')),
    'Agent-CSWin-B': Row(
        AGENT_CSWIN,
        ('73', '', '14.9'),
        {'backbone.arch': 'b36292', 'head.in_channels': 768},
    ),
}

SOFT = {
    f'SOFT-{name}': Row(f'soft/soft-{name[0].lower()}_in1k.py', (params, '', flops))
    for name, params, flops in (
        ('Tiny', '13', '1.9'),
        ('Small', '24', '3.3'),
        ('Medium', '45', '7.2'),
        ('Large', '64', '11.0'),
        ('Huge', '87', '16.3'),
    )
}

SOFT_PYRAMID = {
    'Transformer': Row('attention_zoo/soft-t-softmax_in1k.py', ('13', '3.9', '', '')),
    'Linformer': Row('attention_zoo/soft-t-linformer_in1k.py', ('13', '1.9', '', '')),
    'Performer': Row('attention_zoo/soft-t-performer_in1k.py', ('13', '2.2', '', '')),
    'Nyströmformer': Row('attention_zoo/soft-t-nystrom_in1k.py', ('13', '2.0', '', '')),
    'SOFT': Row('soft/soft-t_in1k.py', ('13', '', '', '1.9')),
}

TABLES = {
    'ELFATT: classifiers': Table(
        """\
These are at 224², or 384² where the name says so, with a head of 1,000 classes. The
printed values are from the paper (arXiv 2501.06098), Table I and others, and from its
authors' README (github.com/Alicewithrabbit/ELFTEST). Without softmax-attention
products, the paper still counts those with agents, whose biases FlashAttention does not
take; ours are left out with the others.""",
        (PARAMS, FLOPS, NO_SOFTMAX),
        ELFATT,
    ),
    'ELFATT: detectors and segmentors': Table(
        """\
Mask R-CNN is counted at 1280 × 800, UperNet at 512 × 2048. The printed values are from
the paper's Tables VI and VII. Mask R-CNN has 1,000 proposals and 100 masks. UperNet's
FLOPs leave out its auxiliary head; its parameters include it.

Where Swin has windows, ours are 0.8 to 2 GFLOPs below the printed ones: maps are padded
to whole windows, and ours project the map's tokens back, theirs the padded ones too,
which are cut off then. Swin-T-Agent's biases are resized to the grid of agents as one
sum, where agent attention's own code resizes its two parts. Neither changes a
result.""",
        (PARAMS, FLOPS, NO_SOFTMAX),
        DOWNSTREAM,
    ),
    'ELFATT: variants': Table(
        """\
The paper's Tables II-V vary block sizes, LePE, c₁ : c₂ (channels of the global and the
local half), and the levels with ELFATT, here in CSWin-T at 224². Table IV's marks of
levels are taken from the order of its rows. The tests also check how the variants
relate to each other. Levels are a list with one entry per stage, and an entry that is a
list is a pattern over the blocks of its stage. The paper's own model is

```python
linear = dict(type='ELFATT', block_size=196)
softmax = dict(type='SoftmaxAttention', lepe=True)
model = dict(backbone=dict(attention=[linear, linear, [softmax, linear], softmax]))
```

In Swin, a list changes the attentions only. ELFATT's Swin also has overlapping
convolutions, which are options of their own: `patch_embed` and `merging`.""",
        (PARAMS, FLOPS, NO_SOFTMAX),
        VARIANTS,
    ),
    'Agent attention': Table(
        """\
These are at 224². The printed values are from the paper (arXiv 2312.08874) and its
code's README, which count neither normalization nor the resizing of biases.""",
        (PARAMS, FLOPS, NO_NORM),
        AGENT,
    ),
    'SOFT': Table(
        """\
These are at 224². The printed values are from the code's README
(github.com/fudan-zvg/SOFT) and agree with the paper (arXiv 2110.11945). The 1.9 GFLOPs
of SOFT-Tiny are ours without the 20 Newton-Raphson steps of the pseudo-inverse. The
GFLOPs of the others agree with neither count to the last digit, and printed parameters
are rounded down.""",
        (PARAMS, FLOPS, NO_INVERSE),
        SOFT,
    ),
    "Other attentions in SOFT-Tiny's pyramid": Table(
        """\
These are the attentions of Table 1 of the SOFT paper, at 224², in the first three
stages. The fourth has softmax attention with a class token. The paper does not say how
its Linformer and its softmax attention are built; ours are not exactly those rows.
Linformer is a spatial reduction by 8, 4 and 2, Nyströmformer has 49 landmarks, and
Performer has int(d ln d) random features.""",
        (PARAMS, FLOPS, NO_SOFTMAX, NO_INVERSE),
        SOFT_PYRAMID,
    ),
}

INTRODUCTION = """\
# FLOPs and parameters

`python tests/test_analysis/paper_flops.py` writes this page. The tests compare its
counts with the printed ones to the last digit. Printed values are in brackets. Where
one differs from our count, the last column says by how much. Every row is a config and
options of its `model`. This command counts it:

```bash
python tools/analysis_tools/get_flops.py CONFIG --cfg-options model.OPTION=VALUE
```

Detectors need `--shape 800 1280`, segmentors `--shape 512 2048`.

**Counted**, for one image, are the multiply-accumulates of convolutions and matrix
products, attention included; 5 per output element of LayerNorm and GroupNorm, 2 of
BatchNorm; 4 per output element of bilinear and 1 of nearest resizing; 1 per input
element of adaptive pooling. The Newton-Raphson steps of a pseudo-inverse count as the
model states them, however they are computed. **Not counted** are biases, activations,
softmax and other element-wise functions, and RoIAlign.

**Softmax-attention products** are QKᵀ and AV of softmax attention as a fused kernel
computes them (`scaled_dot_product_attention`), N_q · N_k · d each. Counters that do not
look into fused kernels miss them. The ELFATT paper prints both counts.

**Not reproduced here** are the papers' timings on Jetson boards, Stable Diffusion and
the Long Range Arena.
"""


@lru_cache(None)
def config_of(name):
    return load_config(str(ROOT / 'configs' / name))


@lru_cache(None)
def measure(title, name, shape=None):
    """Number of parameters and FlopCount of a row, as get_flops counts them.

    Args:
        title (str): The table's title.
        name (str): The row's name.
        shape (tuple[int], optional): Another height and width of the image.
    """
    row = TABLES[title].rows[name]
    cfg = copy.deepcopy(config_of(row.config))
    cfg.merge_from_dict({f'model.{key}': x for key, x in row.options.items()})
    # RoI heads have to run: their operations have no meta kernels
    with torch.device('cpu' if 'roi_head' in cfg.model else 'meta'):
        model = get_flops.build_model(cfg)
    shape = shape or row.shape or get_flops.default_shape(cfg)
    num_params = sum(parameter.numel() for parameter in model.parameters())
    return num_params, get_flops.count(model, shape)


def compare(title, name):
    """Columns of a row.

    Returns:
        dict[str, tuple]: (value, what is printed, whether they agree to the last
        printed digit) by the column's title.
    """
    table = TABLES[title]
    columns = {}
    printed = table.rows[name].printed or ('',) * len(table.columns)
    for column, text in zip(table.columns, printed):
        value = column.value(*measure(title, name))
        decimals = len(text.partition('.')[2])
        columns[column.title] = value, text, text in ('', f'{value:.{decimals}f}')
    return columns


def option_text(key, value):
    if isinstance(value, list):
        value = '...'
    return f'`{key}={value}`'.replace(', ', ',')


def render_row(title, name):
    """Cells of a row: model, options, columns, difference."""
    table = TABLES[title]
    row = table.rows[name]
    cells = [
        f'[{name}](../configs/{row.config})',
        ' '.join(option_text(*option) for option in row.options.items()),
    ]
    differences = []
    for column, (value, text, agrees) in zip(
        table.columns, compare(title, name).values()
    ):
        cell = f'{value:.{column.decimals}f}'
        cells.append(f'{cell} ({text})' if text else cell)
        if not agrees:
            differences.append(f'{column.title}: {value - float(text):+.2f}')
    return [*cells, '; '.join(differences)]


def render_table(title):
    table = TABLES[title]
    head = [
        'model',
        'options',
        *(column.title for column in table.columns),
        'ours - printed',
    ]
    rows = [render_row(title, name) for name in table.rows]
    return '\n'.join(
        f'| {" | ".join(cells)} |' for cells in (head, ['---'] * len(head), *rows)
    )


def render():
    """The page."""
    sections = [
        f'## {title}\n\n{table.text}\n\n{render_table(title)}\n'
        for title, table in TABLES.items()
    ]
    return '\n'.join([INTRODUCTION, *sections])


if __name__ == '__main__':
    with get_flops.quiet():
        PAGE.write_text(render(), encoding='utf-8')
