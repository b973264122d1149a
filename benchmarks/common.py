"""Functions that start commands, train, and write reports."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The commands measure this source tree, whatever is installed.
sys.path[:0] = [str(ROOT), str(ROOT / 'tools')]

from mmlinattn_tools.cli import Parser, add_overwrite, output_file, protect

CONFIGS = ROOT / 'configs' / 'soft'
TRAIN = ROOT / 'tools' / 'train.py'
MAKE_SHAPES = ROOT / 'tools' / 'dataset_converters' / 'make_shapes.py'


def environment(**more):
    """Environment variables of a process on the CPU that finds our packages."""
    paths = ROOT, ROOT / 'benchmarks', os.environ.get('PYTHONPATH')
    path = os.pathsep.join(str(x) for x in paths if x)
    return dict(os.environ, CUDA_VISIBLE_DEVICES='', PYTHONPATH=path, **more)


def run(script, *args):
    """Runs one of our scripts silently.

    Raises:
        RuntimeError: If it fails, with the end of its output.
    """
    command = [sys.executable, *map(str, (script, *args))]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    if done.returncode:
        raise RuntimeError(f'{command} failed:\n{(done.stdout + done.stderr)[-3000:]}')


def make_shapes(layout, out, side, num_train, num_val, *options):
    """Writes square images of shapes in a layout, if they are missing."""
    size = '--size', side, side, '--num-train', num_train, '--num-val', num_val
    run(MAKE_SHAPES, '--layout', layout, '--out', out, *size, *options)


def report_parser(description):
    """A parser with the arguments of a command that writes a report."""
    parser = Parser(description=description)
    parser.add_argument(
        '--out', type=output_file, metavar='FILE', help='JSON file to write'
    )
    add_overwrite(parser)
    return parser


def parse_report_args(parser, argv, *endings):
    """The arguments; ends the command if it would replace another one's report.

    Args:
        parser (Parser): From :func:`report_parser`.
        argv (list[str], optional): The command line.
        *endings (str): Endings of files that are written beside the report.
    """
    args = parser.parse_args(argv)
    if args.out:
        protect(args, args.out, *map(args.out.with_suffix, endings))
    return args
