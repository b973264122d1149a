"""Another version of this package, measured in turn with this one.

Its variants run in a process that has the other ``mmlinattn`` and these benchmarks.
"""

import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import torch


def process_of(module, args, package=None, **more):
    """The process that runs one of these modules for the command.

    Args:
        module (str): Name of the module, which calls :func:`child_args`.
        args (Namespace): Of the command.
        package (Path, optional): Folder of another version of this package.
        **more: What else the module needs to know.

    Returns:
        tuple: The command, and keyword arguments of ``subprocess``.
    """
    known = dict(suite=args.suite, device=str(args.device), dtype=args.dtype)
    known.update(batch=args.batch, small=args.small, threads=torch.get_num_threads())
    path = [str(package)] if package else []
    path += map(os.path.abspath, sys.path)
    return [sys.executable, '-m', module, json.dumps(dict(known, **more))], dict(
        text=True,
        # -m puts the current folder first: it has this package and no other
        cwd=Path(__file__).resolve().parents[1],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path)),
    )


def child_args():
    """The arguments from :func:`process_of`; sets the number of threads."""
    args = Namespace(**json.loads(sys.argv[1]))
    args.device = torch.device(args.device)
    torch.set_num_threads(args.threads)
    return args


class OtherVersion:
    """Variants of a case in a process with another version of this package.

    Args:
        package (Path): Its folder, which has ``mmlinattn``.
        index (int): The case's place in the suite.
        names (Sequence[str]): Of the variants.
        args (Namespace): Of the command.
    """

    def __init__(self, package, index, names, args):
        command, options = process_of(
            __spec__.name, args, package, index=index, names=names
        )
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.stdin.close()
        self.process.wait()

    def timed(self, step, name):
        """One step of a variant, and what cleans up after it."""

        def run():
            print(json.dumps([step, name]), file=self.process.stdin, flush=True)
            self.answer()

        return run, self.answer

    def answer(self):
        """Waits for the process."""
        if not self.process.stdout.readline():
            raise RuntimeError('the process with the other version has ended')


def main():
    from .registry import SUITES
    from .timing import build, make_inputs, timed

    args = child_args()
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries print too
    case = SUITES[args.suite]()[args.index].at(args.batch, args.small)
    (inputs, _), modules = make_inputs(case, args), build(case, args, args.names)
    for line in sys.stdin:
        step, name = json.loads(line)
        for action in timed(modules[name], inputs, step, args):
            action()
            print('done', file=answers, flush=True)


if __name__ == '__main__':
    main()
