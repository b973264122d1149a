"""Measures a suite of models or functions side by side, in one sitting.

Every case of a suite has variants, one of them the baseline of the ratios. Time is
measured in rounds that all variants take turns in, slow ones in a few of them only;
peak memory in a process of its own for each variant and step, which also tells which
variants can't run here: they are left out, and it says why. Results are written after
every case. With --profile it is one step of each under PyTorch's profiler instead.

suites:
  ops               softmax-free attention and its products by themselves
  solvers           ways to apply the inverse inside it
  backbones         SOFT beside its official form, SOFT++ beside PVTv2 and Swin
  detectors         training steps and predictions of RetinaNet and Mask R-CNN
  attentions        Swin-T and CSWin-T with every attention of the ELFATT paper
  memory            memory of every attention against the number of tokens
  large             memory of the smaller models on an image of 1333×2000 pixels
  antioversmoothing AttnScale and FeatScale beside the plain models

examples:
  python benchmarks/run.py --suite ops --out docs/benchmarks
  python benchmarks/run.py --suite backbones --only 224 --rounds 5
  python benchmarks/run.py --suite attentions --device cuda --dtype bfloat16 \\
      --batch 16 --baseline 'global, unfused'
  python benchmarks/run.py --suite backbones --only 'tiny backbones, 1×3×800' --profile
  python benchmarks/run.py --suite detectors --small --rounds 2   # does it work?
"""

import argparse
import copy
import json
from functools import partial

import torch

from mmlinattn.utils.cli import Parser, add_overwrite, output_folder, protect, threads

from .cases import place
from .memory import peak_of_variant
from .operators import as_records, profile_step, profile_table
from .rates import machine, measure_rates
from .registry import SUITES
from .report import FLOOR_METHOD, METHOD, growth, growth_tables, make_rows, table
from .timing import STEPS, autocast, drop_gradients, measure, synchronize

try:
    from rich.progress import track
except ImportError:

    def track(sequence, description):
        print(description)
        return sequence


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
        type=int,
        default=20,
        help='times each variant is measured; slow ones less often (default: 20)',
    )
    parser.add_argument(
        '--batch', type=int, default=1, help='images at a time (default: 1)'
    )
    parser.add_argument(
        '--baseline',
        metavar='NAME',
        help='variant that is the denominator of the ratios, in all cases that have '
        "it (default: each case's own)",
    )
    parser.add_argument(
        '--only',
        metavar='TEXT',
        help='only cases whose name and input, such as "SOFT-Norm-Tiny, '
        '1×3×224×224", contain this',
    )
    parser.add_argument(
        '--small',
        action='store_true',
        help='small inputs, to see that everything works; the figures mean nothing',
    )
    parser.add_argument(
        '--profile',
        action='store_true',
        help='where the time goes, operator by operator, instead of how much it is',
    )
    parser.add_argument(
        '--out',
        type=output_folder,
        metavar='DIR',
        help='folder for the results: JSON, Markdown and a plot',
    )
    add_overwrite(parser)
    args = parser.parse_args(argv)
    check(parser, args)
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


def check(parser, args):
    """Exits with one line on arguments that make no sense."""
    for name in ('rounds', 'batch'):
        if getattr(args, name) < 1:
            parser.error(f'--{name} must be at least 1, got {getattr(args, name)}')
    cases = selected(args)
    if not cases:
        titles = [case.title for case in SUITES[args.suite]()]
        parser.error(f'--only={args.only!r} fits none of {titles}')
    names = {name for _, case in cases for name in case.variants}
    if args.baseline is not None and args.baseline not in names:
        parser.error(
            f'--baseline must be one of {sorted(names)}, got {args.baseline!r}'
        )


def selected(args):
    """Places in the suite and cases that the arguments ask for."""
    return [
        (i, case)
        for i, case in enumerate(SUITES[args.suite]())
        if (args.only or '') in case.title
    ]


def run_case(index, case, args, rates):
    """Rows of one case.

    Args:
        index (int): The case's place in the suite.
        case (Case): The case.
        args (argparse.Namespace): Arguments of the command line.
        rates (Rates): The machine's.

    Returns:
        list[dict]: See :func:`report.make_rows`.
    """
    case = case.at(args.batch, args.small)
    peaks = measure_memory(index, case, args)
    times, flops, floor = {}, {}, None
    if case.timed:
        times, flops, floor = measure_times(case, args, peaks, rates)
    baseline = next(iter(case.variants))
    if args.baseline in case.variants:
        baseline = args.baseline
    rows = []
    for step in case.steps:
        training = step != 'forward'
        rows += make_rows(
            case,
            step,
            times.get(step, {}),
            peaks[step],
            {name: (3 if training else 1) * count for name, count in flops.items()},
            rates,
            None if training else floor,
            baseline,
        )
    return rows


def measure_memory(index, case, args):
    """Peak memory by step and variant, or why it is not known."""
    peaks = {step: {} for step in case.steps}
    errors = {}
    runs = [(step, name) for step in case.steps for name in case.variants]
    for step, name in track(runs, description=f'{case.title}, memory'):
        peaks[step][name] = found = peak_of_variant(index, name, step, args)
        if 'error' in found:
            errors[step, name] = found['error']
    for (step, name), error in errors.items():
        print(f'{case.title}, {step}: {name} is left out: {error}')
    return peaks


def measure_times(case, args, peaks, rates):
    """Times of the variants that a process of their own could run.

    Returns:
        tuple: Seconds by step, variant and round; FLOPs of a forward pass by
        variant; and the floor of its seconds, if there is one.
    """
    device, dtype = args.device, getattr(torch, args.dtype)
    inputs, warm_up = make_inputs(case, args)
    modules = build(
        case,
        args,
        [
            name
            for name in case.variants
            if any('error' not in peaks[step][name] for step in case.steps)
        ],
    )
    flops = {}
    if case.counted:
        flops = {name: count(module, inputs) for name, module in modules.items()}
    limits = case.rounds if device.type == 'cpu' else {}
    times = {}
    for step in case.steps:
        runs = {}
        for name, module in modules.items():
            if 'error' in peaks[step][name]:
                continue
            module.train(step != 'forward')
            runs[name] = timed(module, inputs, step, device, dtype)
            # on the small input where one step takes very long
            run, clean_up = (
                timed(module, warm_up, step, device, dtype)
                if name in limits
                else runs[name]
            )
            run()
            clean_up()
        if runs:
            rounds = {
                name: min(limits.get(name, args.rounds), args.rounds) for name in runs
            }
            times[step] = measure(
                runs, rounds, partial(track, description=f'{case.title}, {step}')
            )
    floor = case.floor(inputs, rates) if case.floor else None
    return times, flops, floor


def make_inputs(case, args):
    """The case's inputs, and small ones to warm up with."""
    return tuple(
        place(case.inputs(shape, getattr(torch, args.dtype)), args.device)
        for shape in (case.shape, case.small)
    )


def build(case, args, names):
    """Modules of some variants, always with the same weights."""
    modules = {}
    for name in names:
        torch.manual_seed(0)
        modules[name] = case.variants[name]().to(args.device)
    return modules


def profile_case(case, args):
    """Profiles of every variant and step of a case.

    Returns:
        list[dict]: 'case', 'shape', 'step', 'variant' and 'operators', see
        :func:`operators.profile_step`.
    """
    case = case.at(args.batch, args.small)
    inputs, warm_up = make_inputs(case, args)
    modules = build(case, args, case.variants)
    runs = [(step, name) for step in case.steps for name in modules]
    found = []
    for step, name in track(runs, description=f'{case.title}, profile'):
        module = modules[name]
        module.train(step != 'forward')
        for of_run in (warm_up, inputs):
            run, clean_up = timed(
                module, of_run, step, args.device, getattr(torch, args.dtype)
            )
            operators = profile_step(run, args.device)
            clean_up()
        found.append(
            dict(
                case=case.name,
                shape=case.shape,
                step=step,
                variant=name,
                operators=operators,
            )
        )
    return found


def timed(module, inputs, step, device, dtype):
    """One step of a module, and what cleans up after it."""

    def run():
        STEPS[step](module, inputs, partial(autocast, device, dtype))
        synchronize(device)

    def clean_up():
        drop_gradients([*module.parameters(), *inputs])

    return run, clean_up


def count(module, inputs):
    """FLOPs of a forward pass, two for each multiply-accumulate."""
    from mmlinattn.analysis import count_flops

    try:
        meta = torch.device('meta')
        twin = copy.deepcopy(module).to(meta)
        counted = count_flops(twin, *place(inputs, meta))
    except RuntimeError:  # something depends on values
        counted = count_flops(module, *inputs)
    return 2 * counted.total()


def describe(args, rates, rows):
    """Describes what was measured, on what and how, in Markdown."""
    rounds = (
        f', up to {args.rounds} rounds' if any('seconds' in row for row in rows) else ''
    )
    method = METHOD
    if any('floor_share' in row for row in rows):
        method += ' ' + FLOOR_METHOD
    body = table(rows)
    if args.suite == 'memory':
        body = growth_tables(growth(rows))
    return f'{heading(args, rounds)}Its own rates: {rates}.\n\n{method}\n\n{body}\n'


def heading(args, rounds=''):
    """What is measured on what, in two lines."""
    small = ', small inputs: figures mean nothing' if args.small else ''
    return (
        f'Suite `{args.suite}`, {args.dtype}{rounds}{small}.\n{machine(args.device)}.\n'
    )


def stem(args):
    """The result files' common stem."""
    return args.out / '_'.join(
        [
            args.suite,
            args.device.type,
            *[args.dtype] * (args.dtype != 'float32'),
            *[f'batch{args.batch}'] * (args.batch != 1),
            *['profile'] * args.profile,
        ]
    )


def write(args, rates, rows):
    """Writes the results so far."""
    results = dict(
        rates=dict(gemm=rates.gemm, copy=rates.copy, exp=rates.exp), rows=rows
    )
    if args.suite == 'memory':
        results['growth'] = growth(rows)
    write_files(args, describe(args, rates, rows), **results)


def write_files(args, text, **results):
    """Writes Markdown, and results with their machine as JSON."""
    record = dict(machine=machine(args.device), dtype=args.dtype, **results)
    args.out.mkdir(parents=True, exist_ok=True)
    stem(args).with_suffix('.md').write_text(text)
    stem(args).with_suffix('.json').write_text(json.dumps(record, indent=1))


def draw(args, found):
    """Plots the results, if Matplotlib is there."""
    try:
        from .plot import plot_growth, plot_profiles, plot_ratios
    except ImportError as error:
        print(f'no plot: {error}')
        return
    plot = plot_growth if args.suite == 'memory' else plot_ratios
    if args.profile:
        plot = plot_profiles
    plot(found, stem(args).with_suffix('.png'))


def main(argv=None):
    args = parse_args(argv)
    torch.set_num_threads(args.threads)
    found, text = (profiles if args.profile else measurements)(args)
    if args.out is not None:
        draw(args, found)
        print(f'written: {stem(args)}.*')
    print(text)


def profiles(args):
    """Profiles of all cases, and their description."""
    found = []
    for _, case in selected(args):
        found += profile_case(case, args)
        text = f'{heading(args)}\n{profile_table(found)}\n'
        if args.out is not None:
            write_files(args, text, profiles=as_records(found))
    return found, text


def measurements(args):
    """Rows of all cases, and their description."""
    rates = measure_rates(args.device, getattr(torch, args.dtype), args.small)
    rows = []
    for index, case in selected(args):
        rows += run_case(index, case, args, rates)
        if args.out is not None:
            write(args, rates, rows)
    return rows, describe(args, rates, rows)


if __name__ == '__main__':
    main()
