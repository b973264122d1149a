"""Tests a model of mmdet, mmseg or mmpretrain."""

import argparse
from collections.abc import Sequence
from typing import Optional

from mmlinattn.cli import parser as cli
from mmlinattn.cli.run_arguments import parse_run, run_parser

# what to type in place of options of the libraries' own scripts
REPLACED = {
    '--show': '--show-dir DIR saves the pictures',
    '--wait-time': '--show-dir DIR saves the pictures',
    '--interval': '--show-dir DIR saves the pictures of all images',
    '--out-item': '--out FILE.pkl saves the predictions; the metrics are in the work '
    "directory's JSON file",
    '--amp': '--cfg-options test_cfg.fp16=True',
    '--format-only': '--cfg-options test_evaluator.format_only=True',
}


def parse_args(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = run_parser(
        'Test a model from a config of mmdet, mmseg, mmpretrain or mmlinattn: '
        'print its metrics, and write them to the work directory.',
        REPLACED,
    )
    parser.add_argument('checkpoint', help='path of the weights to test')
    parser.add_argument(
        '--out',
        metavar='PATH',
        help='save predictions: mmdet and mmpretrain in a file, *.pkl, mmseg in '
        'a folder of label maps',
    )
    parser.add_argument(
        '--show-dir',
        type=cli.output_folder,
        metavar='DIR',
        help='save pictures of predictions in this folder (mmseg: in its '
        'vis_data/vis_image)',
    )
    parser.add_argument(
        '--tta',
        action='store_true',
        help='test-time augmentation, by tta_model and tta_pipeline of the config; '
        'default for mmdet and mmpretrain: flips',
    )
    cli.add_overwrite(parser)
    return parse_run(parser, argv)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Run the command."""
    # before the libraries are imported, which takes seconds
    args = parse_args(argv)
    with cli.errors_in_one_line(ImportError):
        from mmlinattn.runs import testing
    with cli.errors_in_one_line(*cli.INPUT_ERRORS):
        cfg = testing.prepare(args)
    with cli.errors_in_one_line(*testing.ERRORS):
        testing.run(cfg)
