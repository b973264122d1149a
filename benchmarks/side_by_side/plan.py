"""Measures all that a GPU is to tell, part by part, in order of value.

Parts are the tests marked gpu, then the suites, each in several batches and dtypes. A
part is a process with a limit of time. Suites are written case by case, so that the
next start goes on where this one was cut off: what is measured is never measured twice,
and what ended its process twice is left out. It runs from the source tree and needs
torch, mmengine and mmcv-lite; mmdet, timm, pytest and Matplotlib are used where they
are there.

parts: tests, ops, solvers, backbones, attentions, detectors, memory

examples:
  python benchmarks/run.py --plan gpu
  python benchmarks/run.py --plan gpu --parts tests backbones --budget 540
  python benchmarks/run.py --plan gpu --small --device cpu     # does it work?
"""

import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import torch

from mmlinattn_tools.cli import Parser, exit_with, output_folder

from . import command
from .rates import machine
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
PARTS = ('tests', *SUITES)
THREADS = min(8, os.cpu_count() or 1)
# Less than this is not worth a process.
SHORTEST = 15
# A decorator, a module's mark or a parameter's.
MARKED = re.compile(r'^\s*@pytest\.mark\.gpu|^.*\bmarks?\b.*=.*mark\.gpu', re.MULTILINE)


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    parser.add_argument('--plan', required=True, choices=['gpu'], help='of gpu')
    parser.add_argument(
        '--parts',
        nargs='+',
        choices=PARTS,
        default=PARTS,
        metavar='PART',
        help='only these (default: all)',
    )
    parser.add_argument(
        '--device',
        type=command.device,
        metavar='DEVICE',
        help='cuda or cpu (default: cuda)',
    )
    parser.add_argument(
        '--limit',
        type=float,
        default=420,
        metavar='SECONDS',
        help='of each process, which is ended then (default: 420)',
    )
    parser.add_argument(
        '--budget',
        type=float,
        default=float('inf'),
        metavar='SECONDS',
        help='of the whole run (default: none)',
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
        help="folder for the results (default: the GPU's in docs/benchmarks; one in "
        'work_dirs with --small or on a CPU)',
    )
    args = parser.parse_args(argv)
    for name in ('limit', 'budget'):
        if not getattr(args, name) > 0:
            parser.error(f'--{name} must be positive, got {getattr(args, name)}')
    if args.device is None:
        if not torch.cuda.is_available():
            parser.error(
                'no GPU is found; --small --device cpu tries the plan without one'
            )
        args.device = torch.device('cuda')
    if args.out is None:
        name = re.sub(r'\W+', '-', machine(args.device).partition(',')[0].lower())
        real = args.device.type == 'cuda' and not args.small
        folder = ROOT / ('docs/benchmarks' if real else 'work_dirs')
        args.out = folder / f'{"gpu" if real else "plan"}_{name}'
    args.out = args.out.resolve()
    return args


def main(argv=None):
    args = parse_args(argv)
    torch.set_num_threads(THREADS)
    end = time.monotonic() + args.budget
    # ends as an exception does: a process of ours must not outlive this one
    handler = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lines = []
    try:
        if 'tests' in args.parts:
            lines.append(['tests', run_tests(args, end)])
        for suite, runs in SUITES.items():
            for dtype, batch in runs[: 1 if args.small else None]:
                if suite in args.parts:
                    options = ['--suite', suite, '--dtype', dtype, '--batch', batch]
                    name = f'{suite}, {dtype}, batch {batch}'
                    lines.append([name, run_suite(name, options, args, end)])
    except ValueError as error:
        exit_with(error)
    finally:
        signal.signal(signal.SIGTERM, handler)
    text = f'{machine(args.device)}.\n\n{markdown(["part", "state"], lines)}\n'
    (args.out / 'README.md').write_text(text)
    print(f'\nwritten: {args.out}\n\n{text}')


def run_suite(name, options, args, end):
    """Measures what is left of a suite, and tells how far it is."""
    options = [*options, '--device', str(args.device), '--out', str(args.out)]
    options += ['--threads', str(THREADS), '--resume'] + ['--small'] * args.small
    parsed = command.parse_args(options)
    begin = time.monotonic()
    while command.due(parsed)[2]:
        limit = min(args.limit - (time.monotonic() - begin), end - time.monotonic())
        if limit < SHORTEST:
            break
        script = ROOT / 'benchmarks' / 'run.py'
        code = run_process([str(script), *options], args, limit)
        print(f'{name}: ended with {code}' if code else f'{name}: done', flush=True)
    rows, _, cases = command.due(parsed)
    total = len(command.selected(parsed))
    done = len({(row['case'], row['shape']) for row in rows})
    given_up = total - done - len(cases)
    state = f'{done} of {total} cases'
    return state + (f', {given_up} ended their process twice' if given_up else '')


def run_tests(args, end):
    """Runs the tests that need a GPU if they have not passed yet."""
    report = args.out / 'tests.xml'
    if find_spec('pytest') is None:
        return 'need pytest'
    limit = min(args.limit, end - time.monotonic())
    if limit >= SHORTEST and not (report.exists() and not count(report)['failed']):
        files = [
            str(path)
            for path in sorted((ROOT / 'tests').rglob('test_*.py'))
            if MARKED.search(path.read_text('utf-8'))
        ]
        options = ['-m', 'gpu', '-q', '-rs', '-p', 'no:cacheprovider']
        options.append(f'--junitxml={report}')
        run_process(['-m', 'pytest', *files, *options], args, limit)
    if not report.exists():
        return 'no report'
    return ', '.join(f'{n} {name}' for name, n in count(report).items())


def count(report):
    """Numbers of tests in a JUnit report."""
    suites = list(ElementTree.parse(report).getroot().iter('testsuite'))
    total, failures, errors, skipped = (
        sum(int(suite.get(key, 0)) for suite in suites)
        for key in ('tests', 'failures', 'errors', 'skipped')
    )
    failed = failures + errors
    return dict(passed=total - failed - skipped, failed=failed, skipped=skipped)


def run_process(arguments, args, limit):
    """Runs Python with these arguments for so many seconds at most.

    Returns:
        int | None: Its exit code, None if it took longer.
    """
    path = os.pathsep.join([str(ROOT), *map(os.path.abspath, sys.path)])
    args.out.mkdir(parents=True, exist_ok=True)
    with open(args.out / 'log.txt', 'a') as log:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=dict(os.environ, PYTHONPATH=path),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            return process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                # with what it has started itself
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
