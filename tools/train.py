"""Trains a model of mmdet, mmseg or mmpretrain."""

import os
import sys

from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from mmlinattn.engine import check_pretrained, checkpoint_fault, find_checkpoint
from mmlinattn.utils import check_data, check_file
from mmlinattn.utils.cli import exit_with, run_config, run_parser


def parse_args():
    parser = run_parser(
        'Train a model from a config of mmdet, mmseg, mmpretrain or '
        'mmlinattn; the config may inherit from mmlinattn::.'
    )
    parser.add_argument('--amp', action='store_true', help='automatic mixed precision')
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='go on from a checkpoint, or, without a path, from the newest whole '
        'one in the work directory; where there is none, begin',
    )
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help='scale the learning rate from the batch size that the config is '
        'meant for (auto_scale_lr.base_batch_size) to the real one',
    )
    return parser.parse_args()


def resume(cfg, checkpoint):
    """Makes the run continue from a checkpoint.

    Args:
        cfg (Config): The config of the run.
        checkpoint (str): Path or address of the checkpoint, or 'auto' for the newest
            whole one in the work directory.
    """
    if checkpoint == 'auto':
        checkpoint, skipped = find_checkpoint(cfg.work_dir)
        for text in skipped:
            tell(f'--resume skips {text}')
        if checkpoint is None:
            tell(f'--resume finds no checkpoint in {cfg.work_dir}: training begins')
            cfg.resume = False
            return
        tell(f'--resume goes on from {checkpoint}')
    else:
        check_file('load_from', checkpoint)
        fault = '://' not in checkpoint and checkpoint_fault(checkpoint)
        if fault:
            raise ValueError(f'--resume {checkpoint}: {fault}')
    cfg.resume = True
    cfg.load_from = checkpoint


def tell(text):
    """Prints a line in the first process only."""
    if os.environ.get('RANK', os.environ.get('SLURM_PROCID', '0')) == '0':
        print(f'train.py: {text}', file=sys.stderr)


def prepare(args):
    """The config of the run, and a check that its inputs are there."""
    cfg = run_config(args)
    if args.amp:
        cfg.optim_wrapper.type = 'AmpOptimWrapper'
        cfg.optim_wrapper.setdefault('loss_scale', 'dynamic')
    if args.auto_scale_lr:
        if 'base_batch_size' not in cfg.get('auto_scale_lr', {}):
            raise KeyError(
                '--auto-scale-lr needs auto_scale_lr.base_batch_size, which '
                f'config={args.config!r} does not have'
            )
        cfg.auto_scale_lr.enable = True
    if args.resume is not None:
        resume(cfg, args.resume)
    elif cfg.get('resume'):
        resume(cfg, cfg.get('load_from') or 'auto')
    if cfg.get('load_from'):
        check_file('load_from', cfg.load_from)
    # a run that continues no longer needs its pretrained weights
    if not cfg.get('resume'):
        check_pretrained(cfg)
    check_data(cfg, 'train_dataloader', 'val_dataloader', 'val_evaluator')
    return cfg


def main():
    args = parse_args()
    try:
        cfg = prepare(args)
    except (FileNotFoundError, ImportError, KeyError, ValueError) as error:
        exit_with(error)
    runner = RUNNERS.build(cfg) if 'runner_type' in cfg else Runner.from_cfg(cfg)
    runner.train()


if __name__ == '__main__':
    main()
