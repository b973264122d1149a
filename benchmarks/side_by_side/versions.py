"""Another version of this package, measured in turn with this one.

Its variants run in a process that has the other ``mmlinattn`` and these benchmarks.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import torch


def process_of(module, args, package=None):
    """How to start one of these modules with the command's own options.

    Args:
        module (str): Name of the module.
        args (argparse.Namespace): Of the command.
        package (Path, optional): Folder of another version of this package.

    Returns:
        tuple: The command, and keyword arguments of ``subprocess``.
    """
    command = [sys.executable, '-m', module, args.suite, '--device', str(args.device)]
    command += ['--dtype', args.dtype, '--batch', str(args.batch)]
    command += ['--threads', str(torch.get_num_threads())] + ['--small'] * args.small
    path = [str(package)] if package else []
    path += map(os.path.abspath, sys.path)
    return command, dict(
        text=True,
        # -m puts the current folder first: it has this package and no other
        cwd=Path(__file__).resolve().parents[1],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path)),
    )


def child_parser(description):
    """The options that :func:`process_of` gives to a process."""
    parser = argparse.ArgumentParser(description=f'{description} The command calls it.')
    parser.add_argument('suite')
    parser.add_argument('--device', type=torch.device)
    parser.add_argument('--dtype')
    parser.add_argument('--batch', type=int)
    parser.add_argument('--threads', type=int)
    parser.add_argument('--small', action='store_true')
    return parser


class OtherVersion:
    """Variants of a case in a process with another version of this package.

    Args:
        package (Path): Its folder, which has ``mmlinattn``.
        index (int): The case's place in the suite.
        names (Sequence[str]): Of the variants.
        args (argparse.Namespace): Of the command.
    """

    def __init__(self, package, index, names, args):
        command, options = process_of(__spec__.name, args, package)
        self.process = subprocess.Popen(
            [*command, str(index), *names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            **options,
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
    from .command import build, make_inputs, timed
    from .registry import SUITES

    parser = child_parser('Runs steps that it is told on its standard input.')
    parser.add_argument('case', type=int)
    parser.add_argument('variants', nargs='*')
    args = parser.parse_args()
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries print too
    torch.set_num_threads(args.threads)
    case = SUITES[args.suite]()[args.case].at(args.batch, args.small)
    (inputs, _), modules = make_inputs(case, args), build(case, args, args.variants)
    for line in sys.stdin:
        step, name = json.loads(line)
        dtype = getattr(torch, args.dtype)
        for action in timed(modules[name], inputs, step, args.device, dtype):
            action()
            print('done', file=answers, flush=True)


if __name__ == '__main__':
    main()
