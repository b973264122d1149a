"""Trains a model of mmdet, mmseg or mmpretrain."""

from mmengine.registry import RUNNERS
from mmengine.runner import Runner

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
        help='go on from a checkpoint, or, without a path, from the last one '
        'in the work directory',
    )
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help='scale the learning rate from the batch size that the config is '
        'meant for (auto_scale_lr.base_batch_size) to the real one',
    )
    return parser.parse_args()


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
        cfg.resume = True
        cfg.load_from = None if args.resume == 'auto' else args.resume
    if cfg.get('load_from'):
        check_file('load_from', cfg.load_from)
    # a run that goes on needs its pretrained weights no more
    if cfg.get('pretrained') and not cfg.get('resume'):
        check_file('pretrained', cfg.pretrained)
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
