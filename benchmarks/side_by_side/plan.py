"""Measures all that a GPU is to tell, part by part, in order of value.

Parts are the tests marked gpu, then the suites, each in several batches and dtypes. A
part is a process with a limit of time; what it has measured by then is kept, and a
part that has its page is not measured again. It runs from the source tree and needs
torch, mmengine and mmcv-lite.

examples:
  python benchmarks/run.py --plan gpu
  python benchmarks/run.py --plan gpu --small --device cpu     # does it work?
"""

import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import torch

from mmlinattn_tools.cli import Parser, number, output_folder

from . import command
from .machine import machine
from .report import markdown

ROOT = Path(__file__).resolve().parents[2]
DTYPES, BATCHES = ('bfloat16', 'float32'), ('2', '1', '16')
# Of each suite, the most important first.
SUITES = {
    'ops': tuple(product(DTYPES, BATCHES)),
    'solvers': tuple(product(('float32',), BATCHES)),  # whatever the models' dtype
    'backbones': tuple(product(DTYPES, BATCHES)),
    'attentions': tuple(product(DTYPES, BATCHES)),
    'detectors': tuple(product(DTYPES, ('2',))),
    'memory': tuple(product(DTYPES, ('1',))),
}
THREADS = str(min(8, os.cpu_count() or 1))


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    add = parser.add_argument
    add('--plan', required=True, choices=['gpu'], help='of gpu')
    text = 'cuda or cpu (default: cuda)'
    add('--device', type=command.device, metavar='DEVICE', help=text)
    text = 'of each part (default: %(default)s)'
    add('--limit', type=number(int, 1, 10**5), default=420, metavar='S', help=text)
    text = 'small inputs, to see that everything works; the figures mean nothing'
    add('--small', action='store_true', help=text)
    text = "folder for the results (default: the GPU's in docs/benchmarks)"
    add('--out', type=output_folder, metavar='DIR', help=text)
    args = parser.parse_args(argv)
    if args.device is None:
        if not torch.cuda.is_available():
            parser.error('no GPU is found; --small --device cpu tries it without one')
        args.device = torch.device('cuda')
    if args.out is None:
        name = re.sub(r'\W+', '-', machine(args.device).partition(',')[0].lower())
        real = args.device.type == 'cuda' and not args.small
        args.out = ROOT / ('docs/benchmarks/gpu_' if real else 'work_dirs/plan_')
        args.out = args.out.with_name(args.out.name + name)
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def main(argv=None):
    args = parse_args(argv)
    tests = ['-m', 'pytest', str(ROOT / 'tests'), '-m', 'gpu', '-q', '-rs']
    lines = [['tests', run(tests, args)]]
    for suite, runs in SUITES.items():
        for dtype, batch in runs[: 1 if args.small else None]:
            options = ['--suite', suite, '--dtype', dtype, '--batch', batch]
            options += ['--device', str(args.device), '--threads', THREADS]
            options += ['--out', str(args.out), *['--small'] * args.small]
            page = command.stem(command.parse_args([*options, '--overwrite']))
            if not page.with_suffix('.md').is_file():
                script = str(ROOT / 'benchmarks' / 'run.py')
                state = run([script, *options, '--overwrite'], args)
            else:
                state = 'done before'
            lines.append([f'{suite}, {dtype}, batch {batch}', state])
            print(*lines[-1], sep=': ', flush=True)
    text = f'{machine(args.device)}.\n\n{markdown(["part", "state"], lines)}\n'
    (args.out / 'README.md').write_text(text)
    print(f'\nwritten: {args.out}\n\n{text}')


def run(arguments, args):
    """Runs Python for so many seconds at most, and says how it ended."""
    path = os.pathsep.join([str(ROOT), *map(os.path.abspath, sys.path)])
    with open(args.out / 'log.txt', 'a') as log:
        try:
            done = subprocess.run(
                [sys.executable, *arguments],
                cwd=ROOT,
                env=dict(os.environ, PYTHONPATH=path),
                stdout=log,
                stderr=log,
                timeout=args.limit,
            )
        except subprocess.TimeoutExpired:
            return f'not finished in {args.limit} s'
    return 'done' if not done.returncode else f'ended with {done.returncode}, log.txt'
