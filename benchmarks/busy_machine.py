"""Times two backbones on a CPU beside other busy processes, by how threads wait.

PVTv2-B1 with fused attention and the linear SOFT++-T predict one image of 800 x 1344 in
turns, with one thread or two. OpenMP's threads wait for each other as OpenMP does by
default, or asleep (OMP_WAIT_POLICY=PASSIVE). glibc returns freed memory to the system,
as by default, or keeps it (MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1). Each setting
is a process of its own, in rounds; the busy processes loop in Python and use no memory.

    python benchmarks/busy_machine.py --out docs/benchmarks/busy_cpu.json
"""

import argparse
import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter

import common  # noqa: F401
from studies import write_results

from mmlinattn.utils.heap import KEEPING

FIRST, SECOND = 'PVTv2-B1 (mmdet, fused)', 'SOFT++-T, linear'
SIZE = (1, 3, 800, 1344)
BUSY = (0, 2)  # processes
ASLEEP = dict(OMP_WAIT_POLICY='PASSIVE')
# threads, and variables of the environment
SETTINGS = {
    'one thread': (1, {}),
    'two threads': (2, {}),
    'two threads, asleep': (2, ASLEEP),
    'two threads, memory kept': (2, KEEPING),
    'two threads, asleep, memory kept': (2, {**ASLEEP, **KEEPING}),
}


@contextmanager
def busy_processes(num):
    """Return a context with processes that never wait."""
    with ExitStack() as stack:
        for _ in range(num):
            process = subprocess.Popen([sys.executable, '-c', 'while True: pass'])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def seconds_in_process(num_threads, turns, size):
    """Print the seconds of a prediction of both models, in turns, as JSON."""
    import torch
    from side_by_side.registry import TINY, backbone

    torch.set_num_threads(num_threads)
    torch.manual_seed(0)
    models = {name: backbone(**TINY[name])().eval() for name in (FIRST, SECOND)}
    image = torch.randn(*size)
    seconds = {name: [] for name in models}
    with torch.no_grad():
        for turn in range(turns + 1):
            for name, model in models.items():
                begin = perf_counter()
                model(image)
                if turn:  # not the first one
                    seconds[name].append(perf_counter() - begin)
    print(json.dumps(seconds))


def measure(setting, turns, size):
    """Return seconds by model, of a process with threads of a setting."""
    num_threads, variables = SETTINGS[setting]
    options = dict(threads=num_threads, turns=turns, size=size)
    own = ('OMP_', 'MALLOC_', 'GLIBC_')
    environment = {k: v for k, v in os.environ.items() if not k.startswith(own)}
    environment.update(variables)
    command = [sys.executable, '-W', 'ignore', __file__]
    command += ['--worker', json.dumps(options)]
    done = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def summary(runs):
    """Return medians of the seconds of rounds, and of the ratios within a turn."""
    seconds = {name: [x for run in runs for x in run[name]] for name in runs[0]}
    ratios = [ours / theirs for theirs, ours in zip(seconds[FIRST], seconds[SECOND])]
    return {
        'seconds': {name: round(median(x), 3) for name, x in seconds.items()},
        'ratio': round(median(ratios), 3),
        'ratios': [round(min(ratios), 3), round(max(ratios), 3)],
    }


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--out', type=Path)
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--turns', type=int, default=3)
    parser.add_argument('--size', type=int, nargs=4, default=SIZE)
    parser.add_argument('--worker', help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.worker:
        options = json.loads(args.worker)
        return seconds_in_process(options['threads'], options['turns'], options['size'])
    from side_by_side.report import machine

    rows = []
    for num in BUSY:
        runs = {setting: [] for setting in SETTINGS}
        with busy_processes(num):
            for _ in range(args.rounds):
                for setting, results in runs.items():
                    results.append(measure(setting, args.turns, args.size))
        for setting, results in runs.items():
            rows.append(dict(busy=num, setting=setting, **summary(results)))
            print(rows[-1])
    if args.out:
        write_results(args.out, dict(machine=machine('cpu'), rows=rows))


if __name__ == '__main__':
    main()
