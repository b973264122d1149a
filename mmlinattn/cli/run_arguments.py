"""Arguments of training and testing, and their config: read in a second, without the
libraries."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

from mmlinattn import ops
from mmlinattn.utils.config import load_config

from . import program
from .parser import INPUT_ERRORS, Parser, add_cfg_options, errors_in_one_line, one_line

# what to type in place of options of the libraries' own scripts
REPLACED = {
    '--no-pin-memory': '--cfg-options train_dataloader.pin_memory=False '
    'val_dataloader.pin_memory=False test_dataloader.pin_memory=False',
    '--seed': '--cfg-options randomness.seed=N',
    '--deterministic': '--cfg-options randomness.deterministic=True',
    '--gpus': 'CUDA_VISIBLE_DEVICES=0,1 tools/dist_train.sh CONFIG 2',
    '--gpu-id': 'CUDA_VISIBLE_DEVICES=N before the command',
}


def run_parser(description: str, replaced: dict[str, str]) -> Parser:
    """Arguments that training and testing have in common; ``replaced`` has what to type
    in place of options of the libraries' own scripts."""
    parser = Parser(description=description, replaced={**REPLACED, **replaced})
    add = parser.add_argument
    add('config', help='path of the config')
    text = 'folder for logs, checkpoints and results'
    add('--work-dir', help=f'{text}; default: ./work_dirs/<name of the config>')
    add_cfg_options(parser, 'train_dataloader.batch_size=4')
    text = (
        'accept a checkpoint that does not fit the model: report the differences, and '
        'load the rest'
    )
    add('--allow-mismatch', action='store_true', help=text)
    text = (
        'unpickle everything in checkpoints, whatever its classes; this can run any '
        'code in them'
    )
    add('--trust', action='store_true', help=text)
    text = (
        'begin at once, without building the model, reading the first '
        'samples and comparing checkpoints with the model beforehand'
    )
    add('--no-preflight', action='store_true', help=text)
    text = 'read every photo before the run begins, in as long as one pass over them'
    add('--check-photos', action='store_true', help=text)
    kinds = ['none', 'pytorch', 'slurm', 'mpi']
    text = 'launcher of the processes; default: none, a single one'
    add('--launcher', choices=kinds, default='none', help=text)
    # torch's launcher passes it; MMEngine reads the environment instead
    parser.add_argument(
        '--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS
    )
    return parser


def is_first_process() -> bool:
    """Return True if this process is the only one of a run or its first, by its
    launcher."""
    ranks = map(os.environ.get, ('RANK', 'OMPI_COMM_WORLD_RANK', 'SLURM_PROCID'))
    return next(filter(None, ranks), '0') == '0'


def note(text: str) -> None:
    """Print a line on stderr, in the first process of a run only."""
    if is_first_process():
        print(f'{program.name()}: {one_line(text)}', file=sys.stderr)


def warn(text: str) -> None:
    """Print a warning by :func:`note`."""
    note(f'warning: {text}')


def parse_run(
    parser: Parser, argv: Optional[Sequence[str]] = None
) -> argparse.Namespace:
    """Parse arguments, by default those of the process, and read the config, as
    ``read_config`` of the result. Wrong ones end the program."""
    args = parser.parse_args(argv)
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    with errors_in_one_line(*INPUT_ERRORS):
        args.read_config = load_config(args.config, args.cfg_options, warn)
    return args


def run_options(
    config: Union[str, Path],
    work_dir: Union[str, Path, None],
    cfg_options: Optional[Mapping[str, Any]],
    **options: Any,
) -> argparse.Namespace:
    """Return the arguments of a run that a program starts, as :func:`parse_run` gives
    those of a command line."""
    os.environ.setdefault('LOCAL_RANK', '0')
    path = str(config)
    ops.enable()  # reading a config of classes imports the libraries
    return argparse.Namespace(
        config=path,
        work_dir=work_dir and str(work_dir),
        cfg_options=dict(cfg_options) if cfg_options else None,
        read_config=load_config(path, dict(cfg_options or {}) or None, warn),
        **options,
    )
