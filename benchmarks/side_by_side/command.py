"""Measures a suite of models or functions side by side, in one sitting.

Every case of a suite has variants, one of them the baseline of the ratios. Time is
measured in rounds that all variants take turns in, slow ones in a few of them only;
peak memory before that, on a CPU in a process of its own for each variant and step.
This also tells which variants can't run here: they are left out, and it says why.
Results are written after every case.

suites:
  ops               softmax-free attention and its products by themselves
  solvers           ways to apply the inverse inside it
  backbones         SOFT beside its official form, SOFT++ beside PVTv2 and Swin
  detectors         training steps and predictions of RetinaNet and Mask R-CNN
  attentions        Swin-T and CSWin-T with every attention of the ELFATT paper
  zoo               every attention in the same Swin-T, for docs/attentions.md
  memory            memory of every attention against the number of tokens
  large             memory of the smaller models on an image of 1333×2000 pixels
  antioversmoothing AttnScale and FeatScale beside the plain models
  mmcv_ops          mmcv's compiled operators beside ours, alone and in detectors

examples:
  python benchmarks/run.py --suite ops --out docs/benchmarks
  python benchmarks/run.py --suite backbones --only 224 --rounds 5
  python benchmarks/run.py --suite attentions --device cuda --dtype bfloat16 --batch 16
  python benchmarks/run.py --suite detectors --small --rounds 2   # does it work?
"""

import argparse
import time
from functools import partial

import torch
from rich.progress import track

from mmlinattn_tools.cli import (
    Parser,
    add_overwrite,
    number,
    output_folder,
    protect,
    threads,
)

from .cases import check_same_work
from .machine import machine
from .memory import peak_of_variant
from .registry import SUITES
from .report import (
    METHOD,
    growth,
    growth_tables,
    make_rows,
    table,
    write_json,
    write_page,
)
from .timing import build, make_inputs, measure, timed

# On a GPU, where nobody knows which variants are slow: of all rounds of a step.
SECONDS = 6


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    parser.add_argument(
        '--suite', required=True, choices=SUITES, help='what is measured'
    )
    parser.add_argument(
        '--device',
        type=device,
        default='cpu',
        metavar='DEVICE',
        help='cpu or cuda (default: cpu)',
    )
    parser.add_argument(
        '--dtype',
        choices=['float32', 'bfloat16'],
        default='float32',
        help='bfloat16: mixed precision for models, bfloat16 inputs for functions '
        '(default: float32)',
    )
    parser.add_argument(
        '--threads', type=threads, default=2, help="the CPU's threads (default: 2)"
    )
    parser.add_argument(
        '--rounds',
        type=number(int, 1, 10**6),
        default=20,
        help='times each variant is measured; slow ones less often (default: 20)',
    )
    parser.add_argument(
        '--batch',
        type=number(int, 1, 10**6),
        default=1,
        help='images at a time (default: 1)',
    )
    parser.add_argument(
        '--only',
        default='',
        metavar='TEXT',
        help='only cases whose name and input, such as "SOFT-Norm-Tiny, '
        '1×3×224×224", contain this',
    )
    parser.add_argument(
        '--variants', nargs='+', metavar='NAME', help='only these variants'
    )
    parser.add_argument(
        '--small',
        action='store_true',
        help='small inputs, to see that everything works; the figures mean nothing',
    )
    parser.add_argument(
        '--out',
        type=output_folder,
        metavar='DIR',
        help='folder for the results: JSON, Markdown and a plot',
    )
    add_overwrite(parser)
    args = parser.parse_args(argv)
    cases = SUITES[args.suite]()
    names = {name for case in cases for name in case.variants}
    if not names.issuperset(args.variants or ()):
        parser.error(f'--variants must be of {sorted(names)}, got {args.variants}')
    if not selected(args):
        titles = [case.title for case in cases]
        parser.error(f'--only={args.only!r} fits none of {titles}')
    if args.out:
        protect(args, *map(stem(args).with_suffix, ('.md', '.json', '.png')))
    return args


def device(text):
    """The device of that name, if torch has it here."""
    try:
        found = torch.device(text)
    except RuntimeError:
        found = torch.device('meta')
    if found.type not in ('cpu', 'cuda'):
        raise argparse.ArgumentTypeError(f'must be cpu or cuda, got {text!r}')
    count = torch.cuda.device_count() if found.type == 'cuda' else 1
    if (found.index or 0) >= count:
        raise argparse.ArgumentTypeError(f'{text!r}, but torch finds {count} of them')
    return found


def selected(args):
    """Places in the suite and cases that the arguments ask for, of those that are the
    same on small inputs the first."""
    cases = {}
    for i, case in enumerate(SUITES[args.suite]()):
        names = [x for x in case.variants if x in (args.variants or case.variants)]
        if args.only in case.title and names:
            case = case.at(args.batch, args.small)
            kept = {name: case.variants[name] for name in names}
            cases.setdefault(case.title, (i, case._replace(variants=kept)))
    return list(cases.values())


def run_case(index, case, args):
    """Rows of one case.

    Args:
        index (int): The case's place in the suite.
        case (Case): The case.
        args (argparse.Namespace): Arguments of the command line.

    Returns:
        list[dict]: See :func:`report.make_rows`.
    """
    peaks = measure_memory(index, case, args)
    times = measure_times(index, case, args, peaks) if case.timed else {}
    rows = []
    for step in case.steps:
        found = times.get(step, {})
        rows += make_rows(case, step, pairs(case), found, peaks[step])
    return rows


def pairs(case):
    """Compared pairs: variants and their baselines, the paper's comparisons last."""
    first, *_ = case.variants
    return [(name, first) for name in case.variants] + [
        pair
        for pair in case.paper
        if pair[1] != first and set(pair) <= case.variants.keys()
    ]


def measure_memory(index, case, args):
    """Peak memory by step and variant, or why it is not known."""
    peaks = {step: {} for step in case.steps}
    runs = [(step, name) for step in case.steps for name in case.variants]
    for step, name in track(runs, description=f'{case.title}, memory'):
        peaks[step][name] = peak_of_variant(index, name, step, args)
    for step, found in peaks.items():
        for name, peak in found.items():
            if 'error' in peak:
                print(f'{case.title}, {step}: {name} is left out: {peak["error"]}')
    return peaks


def measure_times(index, case, args, peaks):
    """Times of the variants that could run when their memory was measured.

    Returns:
        dict: Seconds by step, variant and round.

    Raises:
        ValueError: If the variants do not do the same work.
    """

    def can_run(name, steps=case.steps):
        return any('error' not in peaks[step].get(name, ()) for step in steps)

    names = list(filter(can_run, case.variants))
    if not names:  # then the inputs may not be there either
        return {}
    inputs, warm_up = make_inputs(case, args)
    modules = build(case, args, names)
    check_same_work(case.title, modules, warm_up)
    on_gpu = args.device.type == 'cuda'
    limits = {} if on_gpu else case.rounds
    times = {}
    for step in case.steps:
        runs, rounds = {}, {}
        for name in names:
            if not can_run(name, [step]):
                continue
            runs[name] = run, clean_up = timed(modules[name], inputs, step, args)
            rounds[name] = min(limits.get(name, args.rounds), args.rounds)
            if name in limits:  # on the small input, as the step takes very long
                run, clean_up = timed(modules[name], warm_up, step, args)
            for _ in range(1 + on_gpu):
                start = time.perf_counter()
                run()
                seconds = time.perf_counter() - start
                clean_up()
            if on_gpu:
                most = int(SECONDS / len(case.variants) / seconds)
                rounds[name] = min(max(most, 1), rounds[name])
        if runs:
            progress = partial(track, description=f'{case.title}, {step}')
            times[step] = measure(runs, rounds, progress)
    return times


def describe(args, rows):
    """Describes what was measured, on what and how, in Markdown."""
    rounds = (
        f', up to {args.rounds} rounds' if any('seconds' in row for row in rows) else ''
    )
    body = table(rows)
    if args.suite == 'memory':
        body = growth_tables(growth(rows))
    what = f'Suite `{args.suite}`, {args.dtype}{rounds}'
    if args.small:
        what += ', small inputs: figures mean nothing'
    return f'{what}.\n{machine(args.device)}.\n\n{METHOD}\n\n{body}\n'


def stem(args):
    """The result files' common stem."""
    return args.out / '_'.join(
        [
            args.suite,
            args.device.type,
            *[args.dtype] * (args.dtype != 'float32'),
            *[f'batch{args.batch}'] * (args.batch != 1),
        ]
    )


def draw(args, rows):
    """Plots the results, if Matplotlib is there."""
    try:
        from .plot import plot_growth, plot_ratios, plot_times
    except ImportError as error:
        print(f'no plot: {error}')
        return
    plot = plot_growth if args.suite == 'memory' else plot_ratios
    path = stem(args).with_suffix('.png')
    plot(rows, path)
    plot_times(rows, path.with_stem(f'{path.stem}_sizes'))


def main(argv=None):
    args = parse_args(argv)
    torch.set_num_threads(args.threads)
    rows = []
    found = dict(machine=machine(args.device), dtype=args.dtype, small=args.small)
    for index, case in selected(args):
        rows += run_case(index, case, args)
        if args.out is not None:
            write_json(stem(args).with_suffix('.json'), dict(found, rows=rows))
    text = describe(args, rows)
    if args.out is not None:
        draw(args, rows)
        # the last one: a suite that has it is complete
        write_page(stem(args).with_suffix('.md'), text)
        print(f'written: {stem(args)}.*')
    print(text)


if __name__ == '__main__':
    main()
