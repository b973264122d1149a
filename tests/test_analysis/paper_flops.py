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

ELFATT = {
    'CSWin-T-ELFATT': Row('elfatt/cswin-t-elfatt_in1k.py', ('20', '4.44', '4.13')),
    'CSWin-T-ELFATT, blocks of 196': Row(
        'elfatt/cswin-t-elfatt_in1k.py',
        ('20', '4.56', '4.13'),
        {'backbone.block_sizes': 196},
    ),
    'CSWin-B-ELFATT': Row('elfatt/cswin-b-elfatt_in1k.py', ('73', '15.47', '14.46')),
    'CSWin-B-ELFATT, 384²': Row(
        'elfatt/cswin-b-elfatt_finetune_in1k-384px.py', ('73', '51.21', '42.48')
    ),
    'Swin-T-ELFATT': Row('elfatt/swin-t-elfatt_in1k.py', ('30', '4.99', '4.67')),
    'Swin-B-ELFATT': Row('elfatt/swin-b-elfatt_in1k.py', ('91', '16.46', '15.68')),
    'Swin-B-ELFATT, 384²': Row(
        'elfatt/swin-b-elfatt_finetune_in1k-384px.py', ('91', '52.79', '46.08')
    ),
    'CSWin-T-GLOBAL': Row(
        'attention_zoo/cswin-t-global_in1k.py', ('20', '7.60', '4.09')
    ),
    'CSWin-T-LOCAL': Row('attention_zoo/cswin-t-local_in1k.py', ('20', '4.36', '4.09')),
    'CSWin-T-EFFATT': Row('attention_zoo/cswin-t-efficient_in1k.py'),
    'CSWin-T-FLATTEN': Row('attention_zoo/cswin-t-flatten_in1k.py'),
    'Swin-T-GLOBAL': Row('attention_zoo/swin-t-global_in1k.py', ('28', '8.81', '4.38')),
    'Swin-T-LOCAL': Row('attention_zoo/swin-t-local_in1k.py'),
    'Swin-T-EFFATT': Row(
        'attention_zoo/swin-t-efficient_in1k.py', ('28', '4.55', '4.45')
    ),
    'Swin-T-FLATTEN': Row('attention_zoo/swin-t-flatten_in1k.py'),
}

COCO, ADE20K = (800, 1280), (512, 2048)
DOWNSTREAM = {
    'Mask R-CNN, CSWin-T-ELFATT': Row(
        'elfatt/mask-rcnn_cswin-t-elfatt_fpn_1x_coco.py',
        ('40', '334.86', '254.40'),
        shape=COCO,
    ),
    'Mask R-CNN, Swin-T-ELFATT': Row(
        'elfatt/mask-rcnn_swin-t-elfatt_fpn_1x_coco.py',
        ('50', '311.39', '266.43'),
        shape=COCO,
    ),
    'UperNet, CSWin-T-ELFATT': Row(
        'elfatt/upernet_cswin-t-elfatt_1x_ade20k-512x512.py',
        ('50', '1014.26', '929.53'),
        shape=ADE20K,
    ),
    'UperNet, Swin-T-ELFATT': Row(
        'elfatt/upernet_swin-t-elfatt_1x_ade20k-512x512.py',
        ('62', '991.27', '943.94'),
        shape=ADE20K,
    ),
}


def variant(**options):
    """CSWin-T-ELFATT with other options, blocks of 196 tokens if not given."""
    options = {'block_sizes': 196, **options}
    return Row(
        'elfatt/cswin-t-elfatt_in1k.py',
        (),
        {f'backbone.{key}': value for key, value in options.items()},
    )


def levels(*attention):
    """CSWin-T with a list of attentions, one entry a stage."""
    return variant(block_sizes=None, attention=list(attention))


LINEAR = dict(type='ELFATT', block_size=196)
SOFTMAX = dict(type='SoftmaxAttention', lepe=True)
VARIANTS = {
    'blocks of 196': variant(),
    'blocks of 49': variant(block_sizes=49),
    'blocks of 49, 49, 196': variant(block_sizes=(49, 49, 196)),
    'no LePE': variant(lepe=False),
    'c₁ : c₂ = 0 : 1': variant(split_ratio=0.0),
    'c₁ : c₂ = 0.25 : 0.75': variant(split_ratio=0.25),
    'c₁ : c₂ = 0.75 : 0.25': variant(split_ratio=0.75),
    'c₁ : c₂ = 1 : 0': variant(split_ratio=1.0),
    'in no level': levels(SOFTMAX, SOFTMAX, SOFTMAX, SOFTMAX),
    'in level 1': levels(LINEAR, SOFTMAX, SOFTMAX, SOFTMAX),
    'in levels 1, 2': levels(LINEAR, LINEAR, SOFTMAX, SOFTMAX),
    'in levels 1-3, alternating in 3': levels(
        LINEAR, LINEAR, [SOFTMAX, LINEAR], SOFTMAX
    ),
    'in levels 1-3': levels(LINEAR, LINEAR, LINEAR, SOFTMAX),
    'in all levels': levels(LINEAR, LINEAR, LINEAR, dict(LINEAR, block_size=49)),
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
    'Transformer': Row('attention_zoo/soft-t-softmax_in1k.py'),
    'Linformer': Row('attention_zoo/soft-t-linformer_in1k.py'),
    'Performer': Row('attention_zoo/soft-t-performer_in1k.py'),
    'Nyströmformer': Row('attention_zoo/soft-t-nystrom_in1k.py'),
    'SOFT': Row('soft/soft-t_in1k.py', ('13', '', '', '1.9')),
}

TABLES = {
    'ELFATT: classifiers': Table(
        """\
At 224², or 384² where the name says so, with a head of 1,000 classes. Printed: the
paper (arXiv 2501.06098), Table I and others, and the README of its authors
(github.com/Alicewithrabbit/ELFTEST). Of rows without a printed value we have not
seen one.""",
        (PARAMS, FLOPS, NO_SOFTMAX),
        ELFATT,
    ),
    'ELFATT: detectors and segmenters': Table(
        """\
Mask R-CNN at 1280 × 800, UperNet at 512 × 2048. Printed: the same README. Mask R-CNN
has 1,000 proposals and 100 masks; UperNet is counted without its auxiliary head,
whose parameters are in the sum.""",
        (PARAMS, FLOPS, NO_SOFTMAX),
        DOWNSTREAM,
    ),
    'ELFATT: variants': Table(
        """\
What the paper's Tables II-V vary, here in CSWin-T at 224²: block sizes, LePE, c₁ : c₂
(channels of the global and the local half), and the levels with ELFATT. We have not
seen what those tables print beyond the values above; how the variants must relate is
tested. Levels are a list with one entry a stage, where a list is a pattern over the
blocks of the stage; the paper's own model is

```python
linear = dict(type='ELFATT', block_size=196)
softmax = dict(type='SoftmaxAttention', lepe=True)
model = dict(backbone=dict(attention=[linear, linear, [softmax, linear], softmax]))
```

In Swin a list changes the attentions only; ELFATT's Swin has overlapping
convolutions besides, to be given as `patch_embed` and `merging`.""",
        (PARAMS, FLOPS, NO_SOFTMAX),
        VARIANTS,
    ),
    'Agent attention': Table(
        """\
At 224². Printed: the paper (arXiv 2312.08874) and the README of its code, which count
neither normalization nor the resizing of biases.""",
        (PARAMS, FLOPS, NO_NORM),
        AGENT,
    ),
    'SOFT': Table(
        """\
At 224². Printed: the README of its code (github.com/fudan-zvg/SOFT), as the paper
(arXiv 2110.11945). Its 1.9 GFLOPs of SOFT-Tiny are ours without the 20
Newton-Raphson steps of the pseudo-inverse; its numbers of the others fit neither
count to the last digit, and its parameters are rounded down.""",
        (PARAMS, FLOPS, NO_INVERSE),
        SOFT,
    ),
    "Other attentions in SOFT-Tiny's pyramid": Table(
        """\
SOFT's Table 2, at 224²: attentions of the first three stages, softmax attention with
a class token being in the fourth. We have not seen what it prints of the others than
SOFT. Linformer is a spatial reduction by 8, 4, 2, Nyströmformer has 49 landmarks,
Performer int(d ln d) random features.""",
        (PARAMS, FLOPS, NO_SOFTMAX, NO_INVERSE),
        SOFT_PYRAMID,
    ),
}

INTRODUCTION = """\
# FLOPs and parameters

Written by `python tests/test_analysis/paper_flops.py`; the tests hold its counts
against what the papers print, to the last digit. In brackets: what is printed. Where
that differs from our count, the last column says by how much. Every row is a config
and options of its `model`, and can be had from

```bash
python tools/analysis_tools/get_flops.py CONFIG --cfg-options "model.OPTION"
```

with `--shape 800 1280` or `--shape 512 2048` for detectors and segmenters.

**Counted**, for one image: multiply-accumulates of convolutions and matrix products,
those of attention included; 5 per output element of LayerNorm and GroupNorm, 2 of
BatchNorm; 4 per output element of bilinear and 1 of nearest resizing, 1 per input
element of adaptive pooling. The Newton-Raphson steps of a pseudo-inverse count as the
model states them, however they are computed. **Not counted**: biases, activations,
softmax and other element-wise functions, RoIAlign.

**Softmax-attention products** are QKᵀ and AV of softmax attention as a fused kernel
computes it (`scaled_dot_product_attention`), N_q · N_k · d each. Counters that don't
look into fused kernels leave them out; the ELFATT paper prints both counts.

**Not reproduced here**: the papers' timings on Jetson boards, Stable Diffusion and
Long Range Arena.
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
