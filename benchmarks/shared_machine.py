"""The solvers of softmax-free attention beside another process on the same cores.

Each case is timed with the cap on threads (mmlinattn/functional/threads.py) and without
it, in turns, alone and with one busy process for each core.

example:
  OMP_NUM_THREADS=2 python benchmarks/shared_machine.py --out shared_machine
"""

import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.nn.functional import interpolate

from mmlinattn.functional import newton_pinv, softmax_free_attention, threads
from mmlinattn.functional.softmax_free import gaussian_kernel
from mmlinattn.utils.cli import Parser, add_overwrite, protect

# (H, W) of the landmarks; heads
CASES = {
    'newton, 9 × 9 landmarks, 2 heads': (9, 9, 2),
    'spectral, 16 × 16 landmarks, 2 heads': (16, 16, 2),
    'spectral, 25 × 25 landmarks, 2 heads': (25, 25, 2),
}
ATTENTION = 'attention forward and backward, 64 × 64 tokens, 8 × 8 landmarks, 2 heads'


def parse_args(argv=None):
    parser = Parser(description=__doc__)
    parser.add_argument('--repeats', type=int, default=7, help='of each case (7)')
    parser.add_argument(
        '--out', type=Path, metavar='FILE', help='without .md and .json'
    )
    add_overwrite(parser)
    args = parser.parse_args(argv)
    if args.out:
        protect(args, *map(args.out.with_suffix, ('.md', '.json')))
    if args.repeats < 1:
        parser.error(f'--repeats must be at least 1, got {args.repeats}')
    return args


@contextmanager
def competitors(number):
    """Processes that compute without end."""
    command = [sys.executable, '-c', 'while True: pass']
    processes = [subprocess.Popen(command) for _ in range(number)]
    try:
        time.sleep(0.5)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def smooth_tokens(height, width, heads):
    """Tokens of a smooth map, (1, h, H * W, 32)."""
    torch.manual_seed(0)
    maps = torch.randn(heads, 32, max(height // 6, 2), max(width // 6, 2))
    maps = interpolate(maps, (height, width), mode='bicubic')
    return maps.flatten(2).mT[None]


def make_cases():
    cases = {}
    for name, (height, width, heads) in CASES.items():
        landmarks = smooth_tokens(height, width, heads)
        a = gaussian_kernel(landmarks)
        cases[name] = lambda a=a, rhs=landmarks: newton_pinv(a, 20, rhs)
    q = smooth_tokens(64, 64, 2).requires_grad_()
    landmarks = q.detach().view(1, 2, 8, 8, 8, 8, 32).mean((3, 5)).flatten(2, 3)

    def attention():
        softmax_free_attention(q, landmarks, q).sum().backward()

    cases[ATTENTION] = attention
    return cases


@contextmanager
def without_cap():
    library = threads._library
    threads._library = lambda: None
    try:
        yield
    finally:
        threads._library = library


def measure(cases, repeats):
    """Median seconds of each case, without and with the cap."""
    seconds = {}
    for name, run in cases.items():
        times = ([], [])
        for i in range(2 * repeats + 2):
            capped = bool(i % 2)
            start = time.perf_counter()
            if capped:
                run()
            else:
                with without_cap():
                    run()
            if i > 1:  # the first two warm up
                times[capped].append(time.perf_counter() - start)
        seconds[name] = [statistics.median(each) for each in times]
        print(name, seconds[name], flush=True)
    return seconds


def main(argv=None):
    args = parse_args(argv)
    cores = len(os.sched_getaffinity(0))
    cases, found = make_cases(), {}
    load = os.getloadavg()[0]
    for number in (0, cores):
        with competitors(number):
            found[number] = measure(cases, args.repeats)
    lines = [
        '| what | alone: without the cap | with it | beside busy processes: without '
        'the cap | with it |',
        '| --- | --- | --- | --- | --- |',
    ]
    for name in cases:
        times = [f'{1e3 * s:.1f}' for number in found for s in found[number][name]]
        lines.append(f'| {name} | {" | ".join(times)} |')
    policy = os.environ.get('OMP_WAIT_POLICY', 'not set')
    text = (
        '# Shared machines\n\n'
        f'**Measured on a CPU** with {cores} cores by `benchmarks/shared_machine.py`, '
        f'torch {torch.__version__}, {torch.get_num_threads()} threads, '
        f'OMP_WAIT_POLICY {policy}: median milliseconds of {args.repeats} runs, in '
        f'turns. Busy processes: {cores}, one for each core. Load of the machine '
        f'before: {load:.1f}.\n\n' + '\n'.join(lines) + '\n'
    )
    sys.stdout.write(text)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.with_suffix('.md').write_text(text)
        report = dict(
            torch=torch.__version__,
            threads=torch.get_num_threads(),
            policy=policy,
            load_before=load,
            seconds=found,
        )
        args.out.with_suffix('.json').write_text(json.dumps(report, indent=1) + '\n')


if __name__ == '__main__':
    main()
