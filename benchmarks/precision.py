"""Errors of every backbone in float32 and mixed precision, against float64.

A smooth image with details passes each backbone with its initial weights, in evaluation
and in training. The table has the error of the norm of the worst map, and of all
gradients together. Convolutions round as on a GPU: operands and results in half
precision, sums in float32. Float16 needs a torch newer than 2.1 on CPUs.

example:
  python benchmarks/precision.py --out docs/benchmarks/precision
"""

import copy
import platform
import sys
from contextlib import nullcontext
from pathlib import Path

import common  # noqa: F401 (paths)
import torch
from mmengine.logging import MMLogger
from side_by_side.report import markdown, write_json, write_page
from torch.nn.functional import interpolate

from mmlinattn.functional.precision import Float32Convolutions
from mmlinattn.models.layers import embeddings
from mmlinattn.registry import build_model
from mmlinattn_tools.cli import Parser, add_overwrite, protect

SWIN = ('local', 'global', 'elfatt', 'efficient', 'agent', 'flatten')
BACKBONES = {
    'SOFT-T': dict(type='SOFT', arch='tiny'),
    'SOFT-T, normalized': dict(type='SOFT', arch='tiny', attn_norm=True),
    'SOFT++-T': dict(type='SOFTPlusPlus', arch='tiny'),
    **{
        f'Swin-T, {attention}': dict(
            type='SwinTransformer', arch='tiny', attention=attention
        )
        for attention in SWIN
    },
    'CSWin-T': dict(type='CSWinTransformer', arch='tiny'),
    'CSWin-T, elfatt': dict(type='CSWinTransformer', arch='t24181', attention='elfatt'),
    'DeiT-S': dict(type='VisionTransformer', arch='deit-small'),
    # LayerScale of 1e-5 would hide its blocks
    'CaiT-XXS24, LayerScale 0.1': dict(type='CaiT', arch='xxs24', layer_scale=0.1),
}
DTYPES = dict(float32=torch.float32, bfloat16=torch.bfloat16, float16=torch.float16)
NO_FLOAT16 = torch.__version__.startswith(('2.1.', '2.2.'))


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    parser.add_argument(
        '--size', type=int, nargs=2, default=(96, 128), metavar=('H', 'W')
    )
    parser.add_argument(
        '--out', type=Path, metavar='FILE', help='path without .md and .json'
    )
    parser.add_argument('--only', nargs='+', choices=BACKBONES, help='default: all')
    add_overwrite(parser)
    args = parser.parse_args(argv)
    if args.out:
        protect(args, *map(args.out.with_suffix, ('.md', '.json')))
    if min(args.size) < 32:
        parser.error(f'--size must be at least 32 32, got {args.size}')
    return args


def picture(height, width):
    """Two images with details of all sizes, (2, 3, H, W), of variance 1."""
    x = 0
    for level in range(6):
        sides = [max(side >> (5 - level), 1) for side in (height, width)]
        noise = torch.randn(2, 3, *sides)
        x = x + 2.0**-level * interpolate(noise, (height, width), mode='bicubic')
    return x / x.std()


def run(model, x, dtype):
    """Outputs and gradients of a random linear loss, in float64."""
    model.zero_grad()
    half = dtype in (torch.float16, torch.bfloat16)
    torch.manual_seed(1)
    with Float32Convolutions(round_to=dtype) if half else nullcontext():
        with torch.autocast('cpu', dtype) if half else nullcontext():
            outs = model(x)
        loss = sum((out * torch.randn(out.shape).to(out)).sum() for out in outs)
        loss.backward()
    grads = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    return [out.detach().double() for out in outs], torch.cat(grads).double()


def relative(result, expected):
    return ((result - expected).norm() / expected.norm()).item()


def measure(name, size):
    """Rows of one backbone.

    Returns:
        list[dict]: One for each mode, dtype, and dtype of the embeddings.
    """
    torch.manual_seed(0)
    model = build_model(BACKBONES[name])
    model.init_weights()
    x = picture(*size)
    rows = []
    own = embeddings.in_own_dtype
    for mode in ('evaluation', 'training'):
        model.train(mode == 'training')
        state = copy.deepcopy(model.state_dict())
        exact = run(model.double(), x.double(), torch.float64)
        model.float()
        for name_of_dtype, dtype in DTYPES.items():
            for autocast in (False, True):
                unneeded = dtype == torch.float32 and autocast
                if unneeded or (dtype == torch.float16 and NO_FLOAT16):
                    continue
                model.load_state_dict(state)
                if autocast:
                    embeddings.in_own_dtype = lambda layer, x, weight: layer(x)
                try:
                    outs, grad = run(model, x, dtype)
                finally:
                    embeddings.in_own_dtype = own
                worst = max(relative(*pair) for pair in zip(outs, exact[0]))
                rows.append(
                    dict(
                        backbone=name,
                        mode=mode,
                        dtype=name_of_dtype,
                        embeddings=name_of_dtype if autocast else 'float32',
                        outputs=worst,
                        gradients=relative(grad, exact[1]),
                    )
                )
        model.load_state_dict(state)
    return rows


def table(rows):
    """The rows as Markdown: outputs, gradients."""
    kinds = [
        (dtype, embedded)
        for dtype in DTYPES
        for embedded in dict.fromkeys(('float32', dtype))
        if any((r['dtype'], r['embeddings']) == (dtype, embedded) for r in rows)
    ]
    head = [f'{d}' if e == 'float32' else f'{d}, embeddings too' for d, e in kinds]
    found = {(r['backbone'], r['mode'], r['dtype'], r['embeddings']): r for r in rows}
    lines = []
    for key in dict.fromkeys((r['backbone'], r['mode']) for r in rows):
        cells = [found[(*key, *kind)] for kind in kinds]
        texts = [f'{c["outputs"]:.1e}, {c["gradients"]:.1e}' for c in cells]
        lines.append([*key, *texts])
    return markdown(['backbone', 'mode', *head], lines) + '\n'


def main(argv=None):
    args = parse_args(argv)
    MMLogger.get_instance('precision', logger_name='precision', log_level='ERROR')
    rows = []
    for name in args.only or BACKBONES:
        rows += measure(name, args.size)
        print(table(rows[-10:] if not NO_FLOAT16 else rows[-6:]), flush=True)
    height, width = args.size
    text = (
        '**Measured on a CPU** by `benchmarks/precision.py`, torch '
        f'{torch.__version__}, Python {platform.python_version()}, '
        f'{torch.get_num_threads()} thread. Errors of outputs (the worst map) and of '
        f'gradients (all together) against float64, by the norm: 2 × 3 × {height} × '
        f'{width}, initial weights. "Embeddings too" is what autocast alone would do: '
        'convolutions of embeddings in half precision. Ours keep them in float32.\n\n'
    )
    text += table(rows)
    sys.stdout.write(text)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        write_page(args.out.with_suffix('.md'), text)
        facts = dict(torch=torch.__version__, threads=torch.get_num_threads())
        facts['size'] = list(args.size)
        write_json(args.out.with_suffix('.json'), dict(facts, rows=rows))


if __name__ == '__main__':
    main()
