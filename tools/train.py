"""Trains a model of mmdet, mmseg or mmpretrain."""

import os.path as osp

import torch
from mmengine.device import get_device
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from mmlinattn.engine import (
    check_pretrained,
    check_resume,
    check_run,
    checkpoint_fault,
    find_checkpoint,
)
from mmlinattn.engine.hooks.pretrained_backbone_hook import other_start
from mmlinattn.engine.part_errors import quiet
from mmlinattn.models.backbones.base import BaseBackbone
from mmlinattn.utils import check_file
from mmlinattn.weights import fit, load_pretrained, load_safely, read_checkpoint
from mmlinattn.weights.conversion import shortlist
from mmlinattn_tools.cli import (
    INPUT_ERRORS,
    begin_run,
    errors_in_one_line,
    exit_with,
    is_first_process,
    run_config,
    run_parser,
    tell,
    warn,
)


def parse_args():
    parser = run_parser(
        'Train a model from a config of mmdet, mmseg, mmpretrain or '
        'mmlinattn; the config may inherit from mmlinattn::.'
    )
    parser.add_argument(
        '--amp',
        action='store_true',
        help='automatic mixed precision; on a CPU in bfloat16',
    )
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
        hook = (cfg.get('default_hooks') or {}).get('checkpoint') or {}
        checkpoint, skipped = find_checkpoint(
            cfg.work_dir, hook.get('out_dir'), hook.get('filename_tmpl')
        )
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


def check_weights(cfg, model, allow_mismatch):
    """Raises an error for a checkpoint that can't be what is meant.

    A training that goes on needs all of its model. One that starts from `load_from` may
    have another head, or other parts; what they are is said in a line.

    Args:
        cfg (Config): The config of the run.
        model (nn.Module): Its model.
        allow_mismatch (bool): Whether any checkpoint will do.
    """
    path = cfg.load_from
    checkpoint = read_checkpoint(path, 'load_from')
    try:
        found = fit(model, checkpoint)
    except ValueError as error:
        raise ValueError(f'load_from={path!r}: {error}') from error
    fatal = (
        found.broken or not found.state_dict or (cfg.get('resume') and not found.whole)
    )
    if fatal and not allow_mismatch:
        raise ValueError(
            f'load_from={path!r} does not fit the model: {found.describe()}; name '
            'another one, or give --allow-mismatch'
        )
    if cfg.get('resume'):
        try:
            check_resume(checkpoint, model, cfg)
        except ValueError as error:
            raise ValueError(f'load_from={path!r}: {error}') from error
    if not found.whole:
        tell(
            f'load_from={path}: {len(found.state_dict)} of the '
            f'{len(model.state_dict())} entries of the model are loaded; '
            f'{found.describe()}'
        )


def check_start(cfg, model):
    """Raises an error for weights that the backbone can't start from.

    Args:
        cfg (Config): The config of the run.
        model (nn.Module): Its model.
    """
    backbone, path = getattr(model, 'backbone', None), cfg.pretrained
    if backbone is None or other_start(model, None):
        return
    with quiet():
        try:
            if isinstance(backbone, BaseBackbone):
                load_pretrained(backbone, path)
            else:
                read_checkpoint(path, 'pretrained')
        except (KeyError, ValueError) as error:
            raise ValueError(f'pretrained={path!r}: {error.args[0]}') from error
    broken = [k for k, x in backbone.state_dict().items() if x.isnan().any()]
    if broken:
        raise ValueError(f'pretrained={path!r} has NaN in {shortlist(broken)}')


def choose_precision(cfg):
    """Lets mixed precision run where torch has it: on a CPU in bfloat16.

    Args:
        cfg (Config): The config of the run.

    Raises:
        ValueError: If there is no GPU, and another type of numbers is asked for.
    """
    wrapper = cfg.get('optim_wrapper')
    if not isinstance(wrapper, dict) or wrapper.get('type') != 'AmpOptimWrapper':
        return
    if get_device() != 'cpu':
        return
    dtype = wrapper.get('dtype')
    if dtype not in (None, 'bfloat16', torch.bfloat16):
        raise ValueError(
            f'mixed precision in optim_wrapper.dtype={dtype!r} needs a GPU, and there '
            'is none; --cfg-options optim_wrapper.dtype=bfloat16 runs on a CPU'
        )
    # they belong to float16
    for option in ('dtype', 'loss_scale', 'use_fsdp'):
        wrapper.pop(option, None)
    wrapper.type = 'mmlinattn.CPUAmpOptimWrapper'


def prepare(args):
    """The config of the run, and a check that its inputs are there."""
    load_safely()
    cfg = run_config(args)
    if args.amp and isinstance(cfg.get('optim_wrapper'), dict):
        cfg.optim_wrapper.type = 'AmpOptimWrapper'
        cfg.optim_wrapper.setdefault('loss_scale', 'dynamic')
    choose_precision(cfg)
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
    # other runners have checkpoints of their own kinds, such as DeepSpeed's folders
    if cfg.get('load_from') and 'runner_type' not in cfg:
        check_file('load_from', cfg.load_from)
    # a run that continues no longer needs its pretrained weights
    if not cfg.get('resume'):
        # a base may have a variable of that name
        check_pretrained(
            cfg, None if 'pretrained' in (args.cfg_options or {}) else warn
        )
    if is_first_process() and not args.no_preflight:
        preflight(cfg, args)
    begin_run(cfg)
    return cfg


def preflight(cfg, args):
    """Raises an error for what is sure to fail after the run has begun."""
    model = check_run(cfg, args.config, 'train', warn)
    if model is None:
        return
    if cfg.get('load_from') and not osp.isdir(cfg.load_from):
        check_weights(cfg, model, args.allow_mismatch)
    elif cfg.get('pretrained') and not cfg.get('resume'):
        check_start(cfg, model)


def main():
    args = parse_args()
    try:
        cfg = prepare(args)
    except INPUT_ERRORS as error:
        exit_with(error)
    runner = RUNNERS.build(cfg) if 'runner_type' in cfg else Runner.from_cfg(cfg)
    # pretrained weights may be at an address that can't be reached
    with errors_in_one_line(ConnectionError):
        runner.train()


if __name__ == '__main__':
    main()
