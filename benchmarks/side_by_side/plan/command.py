"""Measures all that a GPU is to tell, part by part, in order of value.

Each part runs in a process of its own, with a limit of time. Every unit of it is
written when it is measured: a run that was cut off goes on where it was, a unit that
is done is never measured twice, and one that fails is recorded and the plan goes on.
It runs from the source tree and needs torch, Triton, mmengine and mmcv-lite; mmdet,
timm and pytest are used where they are there.

examples:
  python benchmarks/run.py --plan gpu
  python benchmarks/run.py --plan gpu --list
  python benchmarks/run.py --plan gpu --parts tests gradients --budget 540
  python benchmarks/run.py --plan gpu --small --device cpu     # does it work?
"""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import torch

from mmlinattn.utils.cli import Parser, exit_with, output_folder, threads

from ..command import device
from .parts import PARTS, PLANS
from .record import ROOT, Record, device_name
from .report import describe, problems, summary
from .unit import Settings
from .worker import BROKEN

# A unit that has begun may take so long past the limit of its part.
GRACE = 60
# Less than this is not worth a process.
SHORTEST = 15


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    parser.add_argument('--plan', required=True, choices=PLANS, help='what is measured')
    parser.add_argument(
        '--parts',
        nargs='+',
        choices=PARTS,
        metavar='PART',
        help='only these, in the order of the plan (default: all); see --list',
    )
    parser.add_argument('--list', action='store_true', help='list the parts and end')
    parser.add_argument(
        '--device', type=device, metavar='DEVICE', help='cuda or cpu (default: cuda)'
    )
    parser.add_argument(
        '--limit',
        type=float,
        default=420,
        metavar='SECONDS',
        help='after so many no unit of a part is begun; a minute later the part is '
        'ended (default: 420)',
    )
    parser.add_argument(
        '--budget',
        type=float,
        default=float('inf'),
        metavar='SECONDS',
        help='of the whole run, after which it ends (default: none)',
    )
    parser.add_argument(
        '--threads',
        type=threads,
        default=min(8, os.cpu_count() or 1),
        help="the CPU's threads (default: %(default)s)",
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
        help="folder for results.json, results.md and log.txt (default: the GPU's in "
        'docs/benchmarks; one in work_dirs with --small or on a CPU)',
    )
    args = parser.parse_args(argv)
    for name in ('limit', 'budget'):
        if not getattr(args, name) > 0:
            parser.error(f'--{name} must be positive, got {getattr(args, name)}')
    if args.device is None and not args.list:
        if not torch.cuda.is_available():
            parser.error(
                'no GPU is found; --small --device cpu tries the plan without one'
            )
        args.device = torch.device('cuda')
    return args


def default_out(device, small):
    """Where results go if nobody says."""
    name = re.sub(r'\W+', '-', device_name(device).lower()).strip('-') or device.type
    real = device.type == 'cuda' and not small
    folder = ROOT / ('docs/benchmarks' if real else 'work_dirs')
    return folder / f'{"gpu" if device.type == "cuda" else "cpu"}_{name}'


def main(argv=None):
    args = parse_args(argv)
    if args.list:
        for part in PARTS.values():
            print(f'{part.name:<12}{part.about}')
        return
    names = [name for name in PLANS[args.plan] if name in (args.parts or PARTS)]
    out = (args.out or default_out(args.device, args.small)).resolve()
    try:
        record = Record(out / 'results.json')
        record.start_run(args.device, args.small)
    except (ValueError, OSError) as error:
        exit_with(error)
    end = time.monotonic() + args.budget
    # ends as an exception does: a part's process must not outlive this one
    handler = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for name in names:
        if end - time.monotonic() < SHORTEST:
            print(f'{name}: not begun, the budget is spent')
            continue
        run_part(name, out, args, end)
    signal.signal(signal.SIGTERM, handler)
    record = Record(out / 'results.json')
    settings = Settings(args.device, args.small)
    totals = {name: len(PARTS[name].units(settings)) for name in PLANS[args.plan]}
    (out / 'results.md').write_text(describe(record, totals))
    print(f'\nwritten: {out}/results.*\n\n{summary(record, totals)}')
    if any(problems(record.units(name)) for name in names):
        sys.exit(1)


def run_part(name, out, args, end):
    """Runs the processes of a part until nothing is due or its time is up."""
    path = out / 'results.json'
    begin = time.monotonic()
    code = BROKEN
    while code:
        limit = min(args.limit - (time.monotonic() - begin), end - time.monotonic())
        if limit < SHORTEST:
            break
        grace = max(min(GRACE, end - time.monotonic() - limit), 0)
        # within a budget the last unit has to end in time too
        seconds = limit if grace == GRACE else max(limit - GRACE / 2, 1)
        code = run_process(name, path, args, seconds, limit + grace)
        record = Record(path)
        running = any(u['status'] == 'running' for u in record.units(name).values())
        if code is None:
            record.cut(name, f'cut off after {limit + grace:.0f} s', failed=False)
            print(f'{name}: cut off after {limit + grace:.0f} s')
            break
        if code < 0 or code == 1:
            how = f'signal {-code}' if code < 0 else f'exit code {code}'
            record.cut(name, f'its process ended with {how}', failed=True)
            print(f'{name}: a process ended with {how}')
            if not running:
                break
        elif code != BROKEN:
            break


def run_process(name, path, args, seconds, limit):
    """Runs one process of a part.

    Returns:
        int | None: Its exit code, None if it took longer than ``limit``.
    """
    command = [sys.executable, '-m', f'{__package__}.worker', name, str(path)]
    command += ['--device', str(args.device), '--seconds', str(seconds)]
    command += ['--threads', str(args.threads)] + ['--small'] * args.small
    places = [str(ROOT), *map(os.path.abspath, sys.path)]
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(places), PYTHONUNBUFFERED='1')
    with open(path.with_name('log.txt'), 'a') as log:
        process = subprocess.Popen(
            command,
            cwd=Path(__file__).resolve().parents[2],
            env=env,
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
