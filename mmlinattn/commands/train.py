"""Trains a model of mmdet, mmseg or mmpretrain."""

import argparse
from collections.abc import Sequence
from typing import Optional

from mmlinattn.cli.parser import INPUT_ERRORS, errors_in_one_line
from mmlinattn.cli.run_arguments import parse_run, run_parser

# what to type in place of options of the libraries' own scripts
REPLACED = {
    '--no-validate': '--cfg-options val_cfg=None val_dataloader=None '
    'val_evaluator=None',
    '--no-persistent-workers': '--cfg-options '
    'train_dataloader.persistent_workers=False',
    '--resume-from': '--resume CHECKPOINT',
    '--auto-resume': '--resume',
}


def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = run_parser(
        'Train a model from a config of mmdet, mmseg, mmpretrain or '
        'mmlinattn; the config may inherit from mmlinattn::.',
        REPLACED,
    )
    parser.add_argument(
        '--amp', action='store_true', help='automatic mixed precision, on a GPU'
    )
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='resume from a checkpoint or, without a path, from the last one in the '
        'work directory; without any, begin',
    )
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help='scale the learning rate from the batch size of the config '
        '(auto_scale_lr.base_batch_size) to the real one',
    )
    return parse_run(parser, argv)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    # before the libraries are imported, which takes seconds
    args = parse_args(argv)
    with errors_in_one_line(ImportError):
        from mmlinattn.runs import training
    with errors_in_one_line(*INPUT_ERRORS):
        cfg, comparison = training.prepare(args)
    with errors_in_one_line(*training.ERRORS):
        trained = training.run(cfg, comparison, args)
    if trained.summary:
        print('', *trained.summary, sep='\n')
