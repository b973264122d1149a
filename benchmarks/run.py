"""Measures a suite of models or functions side by side, in one sitting.

Every case of a suite has variants, the first of which is the baseline of the ratios.
Time is measured in rounds that all variants take turns in, slow ones in a few of them
only; peak memory before that, on a CPU in a process of its own for each variant and
step. This also tells which variants can't run here: they are left out, and it says why.
Results are written after every case.

suites:
  ops               softmax-free attention and its products by themselves
  solvers           ways to apply the inverse inside it
  backbones         SOFT beside its official form, backbones beside other libraries'
  detectors         training steps and predictions of RetinaNet and Mask R-CNN
  attentions        Swin-T and CSWin-T with every attention of the ELFATT paper
  zoo               every attention in the same Swin-T, for docs/attentions.md
  antioversmoothing AttnScale and FeatScale beside the plain models
  mmcv_ops          mmcv's compiled operators beside ours, alone and in detectors

examples:
  python benchmarks/run.py --suite ops --out docs/benchmarks
  python benchmarks/run.py --suite backbones --only 224 --rounds 5
  python benchmarks/run.py --suite attentions --device cuda --dtype bfloat16 --batch 16
  python benchmarks/run.py --suite detectors --small --rounds 2   # does it work?
"""

from functools import partial

import common  # noqa: F401
import torch
from rich.progress import track
from side_by_side import measuring, report
from side_by_side.cases import check_same_work
from side_by_side.registry import SUITES

from mmlinattn.cli.parser import Parser, add_overwrite, number, output_folder, protect

positive = number(int, 1, 10**6)


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    add = parser.add_argument
    add('--suite', required=True, choices=SUITES, help='what is measured')
    add('--device', choices=['cpu', 'cuda'], default='cpu', help='default: cpu')
    text = 'bfloat16: mixed precision for models, bfloat16 inputs for functions '
    text += '(default: float32)'
    add('--dtype', choices=['float32', 'bfloat16'], default='float32', help=text)
    add('--threads', type=number(int, 1, 1024), default=2, help='of the CPU (2)')
    text = 'times each variant is measured; slow ones less often (default: 20)'
    add('--rounds', type=positive, default=20, help=text)
    add('--batch', type=positive, default=1, help='images at a time (default: 1)')
    text = 'what glibc does with freed memory on a CPU: kept for the next results, or '
    text += 'returned to the system, as by default (default here: kept)'
    add('--freed-memory', choices=['kept', 'returned'], default='kept', help=text)
    text = 'predictions as CUDA graphs, without the time of launches'
    add('--graph', action='store_true', help=text)
    text = 'only cases whose name and input, such as "SOFT-Norm-Tiny, 1×3×224×224", '
    text += 'contain this'
    add('--only', default='', metavar='TEXT', help=text)
    text = 'small inputs, to see that everything works; the figures mean nothing'
    add('--small', action='store_true', help=text)
    text = 'folder for the results: JSON, Markdown and a plot'
    add('--out', type=output_folder, metavar='DIR', help=text)
    add_overwrite(parser)
    args = parser.parse_args(argv)
    if args.device == 'cuda' and not torch.cuda.is_available():
        parser.error('--device cuda: torch finds no GPU')
    if args.graph and args.device != 'cuda':
        parser.error('--graph needs --device cuda')
    if not selected(args):
        titles = [case.title for case in SUITES[args.suite]()]
        parser.error(f'--only={args.only!r} fits none of {titles}')
    if args.out:
        protect(args, *map(stem(args).with_suffix, ('.md', '.json', '.png')))
    return args


def selected(args):
    """Return places in the suite and cases that the arguments ask for, of those that
    are the same on small inputs the first."""
    cases = {}
    for i, case in enumerate(SUITES[args.suite]()):
        if args.only in case.title:
            case = case.at(args.batch, args.small)
            if args.graph:
                case = case._replace(steps=('forward',))
            cases.setdefault(case.title, (i, case))
    return list(cases.values())


def stem(args):
    """Return the result files' common stem."""
    parts = [args.suite, args.device, *[args.dtype] * (args.dtype != 'float32')]
    parts += [f'batch{args.batch}'] * (args.batch != 1) + ['graph'] * args.graph
    parts += ['returned'] * (args.freed_memory == 'returned')
    return args.out / '_'.join(parts)


def run_case(index, case, args):
    """Return rows of one case, whose place in the suite is ``index``."""
    peaks = {step: {} for step in case.steps}
    runs = [(step, name) for step in case.steps for name in case.variants]
    for step, name in track(runs, description=f'{case.title}, memory'):
        peak = measuring.peak_of_variant(index, name, step, args)
        peaks[step][name] = peak
        if 'error' in peak:
            print(f'{case.title}, {step}: {name} is left out: {peak["error"]}')
    times = measure_times(case, args, peaks)
    first, *_ = case.variants
    pairs = [(name, first) for name in case.variants]
    pairs += [pair for pair in case.paper if pair[1] != first]
    return [
        row
        for step in case.steps
        for row in report.make_rows(case, step, pairs, times.get(step, {}), peaks[step])
    ]


def measure_times(case, args, peaks):
    """Return times of the variants that could run when their memory was measured.

    Returns:
        dict: Seconds by step, variant and round.

    Raises:
        ValueError: If the variants do not do the same work.
    """
    can_run = {
        step: [name for name, peak in of_step.items() if 'error' not in peak]
        for step, of_step in peaks.items()
    }
    names = [
        name for name in case.variants if any(name in some for some in can_run.values())
    ]
    if not names:  # then the inputs may not be there either
        return {}
    inputs, small = measuring.make_inputs(case, args)
    modules = measuring.build(case, args, names)
    check_same_work(case.title, modules, small)
    timed = measuring.replayed if args.graph else measuring.timed
    return {
        step: measuring.measure(
            {name: timed(modules[name], inputs, step, args) for name in can_run[step]},
            args.rounds,
            partial(track, description=f'{case.title}, {step}'),
        )
        for step in case.steps
        if can_run[step]
    }


def main(argv=None):
    args = parse_args(argv)
    measuring.prepare_process(args)
    rows = []
    for index, case in selected(args):
        rows += run_case(index, case, args)
        if args.out is not None:
            report.write_json(stem(args).with_suffix('.json'), args, rows)
    text = report.describe(args, rows)
    if args.out is not None:
        from side_by_side import plot

        path = stem(args).with_suffix('.png')
        plot.plot_ratios(rows, path)
        plot.plot_times(rows, path.with_stem(f'{path.stem}_sizes'))
        # the last one: a suite that has it is complete
        report.write_page(path.with_suffix('.md'), text)
        print(f'written: {stem(args)}.*')
    print(text)


if __name__ == '__main__':
    main()
