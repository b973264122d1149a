"""Measures suites of models side by side and writes tables of the ratios.

example:
  python benchmarks/run.py --suite antioversmoothing --out docs/benchmarks
"""
import argparse
import json
from pathlib import Path

import torch
from registry import SUITES
from rich.progress import track
from timing import forward, forward_backward, machine, measure

STEPS = {'forward': forward, 'forward+backward': forward_backward}


def parse_args():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--suite', required=True, choices=sorted(SUITES))
    parser.add_argument(
        '--device', default='cpu', help='cpu or cuda (default: cpu)')
    parser.add_argument(
        '--threads', type=int, default=2, help="the CPU's threads (2)")
    parser.add_argument(
        '--rounds', type=int, default=20, help='times each is measured (20)')
    parser.add_argument(
        '--out', type=Path, help='folder for the tables, JSON and Markdown')
    args = parser.parse_args()
    if args.rounds < 2:
        parser.error(f'--rounds must be at least 2, got {args.rounds}')
    if args.device.startswith('cuda') and not torch.cuda.is_available():
        parser.error(f'--device={args.device}, but torch finds no GPU')
    return args


def run_case(case, device, rounds):
    """Rows of one case, a step and a variant each."""
    torch.manual_seed(0)
    x = torch.randn(case.shape, device=device)
    modules = {
        name: build().to(device) for name, build in case.variants.items()
    }
    rows = []
    for step, run in STEPS.items():
        for module in modules.values():
            module.train(step != 'forward')
        results = measure(
            modules, x, run, rounds, lambda turns: track(
                turns, description=f'{case.name}, {step}'))
        rows += [
            dict(case=case.name, shape=case.shape, step=step, variant=name,
                 **result.summary()) for name, result in results.items()
        ]
    return rows


def table(rows):
    """Rows as a Markdown table."""
    lines = [
        '| model | input | step | variant | time, ms | ratio | quartiles |',
        '|---|---|---|---|---|---|---|'
    ]
    for row in rows:
        size = '×'.join(map(str, row['shape']))
        lines.append(
            f'| {row["case"]} | {size} | {row["step"]} | {row["variant"]} '
            f'| {1000 * row["seconds"]:.1f} | {row["ratio"]:.3f} '
            f'| {row["ratio_low"]:.3f} - {row["ratio_high"]:.3f} |')
    return '\n'.join(lines)


def main():
    args = parse_args()
    device = torch.device(args.device)
    torch.set_num_threads(args.threads)
    rows = []
    for case in SUITES[args.suite]():
        rows += run_case(case, device, args.rounds)
    text = (f'Suite `{args.suite}`, float32, {args.rounds} rounds, median of '
            f'the ratios within a round.\n{machine(device)}\n\n{table(rows)}\n')
    print(text)
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        stem = args.out / f'{args.suite}_{device.type}'
        stem.with_suffix('.md').write_text(text)
        stem.with_suffix('.json').write_text(
            json.dumps(dict(machine=machine(device), rows=rows), indent=1))


if __name__ == '__main__':
    main()
