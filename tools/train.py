"""Trains a model of mmdet, mmseg or mmpretrain."""

import os.path as osp
from contextlib import nullcontext

from mmlinattn_tools.run_arguments import (
    is_first_process,
    note,
    parse_run,
    run_parser,
    warn,
)

# what to type in place of options of the libraries' own scripts
REPLACED = {
    '--no-validate': '--cfg-options val_cfg=None val_dataloader=None '
    'val_evaluator=None',
    '--no-persistent-workers': '--cfg-options '
    'train_dataloader.persistent_workers=False',
    '--resume-from': '--resume CHECKPOINT',
    '--auto-resume': '--resume',
}


def parse_args():
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
    return parse_run(parser)


# before the libraries are imported, which takes seconds
ARGS = parse_args() if __name__ == '__main__' else None

# isort: split
from mmlinattn_tools import runs  # a line tells of a wrong mmcv

# isort: split
from mmengine.device import get_device
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from mmlinattn.engine import (
    DivergenceError,
    DivergenceHook,
    PretrainedBackboneHook,
    check_pretrained,
    find_checkpoint,
)
from mmlinattn.utils import check_file
from mmlinattn_tools.cli import INPUT_ERRORS, errors_in_one_line
from mmlinattn_tools.resume_report import ResumeReport
from mmlinattn_tools.screen import summary


def resume(cfg, checkpoint):
    """Makes the run resume from the path or address of a checkpoint or, with 'auto',
    from the last one in the work directory."""
    if checkpoint == 'auto':
        checkpoint = find_checkpoint(cfg.work_dir)
        if checkpoint is None:
            note(f'--resume finds no checkpoint in {cfg.work_dir}: training begins')
            cfg.resume = False
            return
        note(f'--resume continues from {checkpoint}')
    check_file('load_from', checkpoint)
    cfg.resume, cfg.load_from = True, checkpoint


def choose_precision(cfg, amp):
    """Sets mixed precision on a GPU, and none on a CPU, where oneDNN's convolutions in
    bfloat16 have wrong gradients."""
    wrapper = cfg.get('optim_wrapper')
    if not isinstance(wrapper, dict):
        return
    if amp:
        wrapper.type = 'AmpOptimWrapper'
        wrapper.setdefault('loss_scale', 'dynamic')
    if wrapper.get('type') == 'AmpOptimWrapper' and get_device() == 'cpu':
        warn('mixed precision needs a GPU, and there is none: float32 is used')
        wrapper.type = 'OptimWrapper'
        for option in ('dtype', 'loss_scale', 'use_fsdp'):
            wrapper.pop(option, None)


def check_weights(cfg, args, model):
    """Raises an error for weights that do not fit the run, and hands on what it read;
    returns what the backbone starts from, or None.

    A resumed training needs its whole model. One that starts from `load_from` may have
    another head, or other parts, which are listed in one line.
    """
    path = cfg.get('load_from')
    if not path:
        if cfg.get('resume'):  # a resumed run needs no pretrained weights
            return None
        named = 'pretrained' in (args.cfg_options or {})
        found = check_pretrained(cfg, model, named)
        # several processes read them at once, because they wait for each other
        return found if cfg.launcher == 'none' else None
    if osp.isdir(path):  # other runners have their own kinds of checkpoints
        return None
    checkpoint, found = runs.compare('load_from', path, model)
    fatal = found.broken or not found.state_dict
    fatal = fatal or (cfg.get('resume') and not found.whole)
    if fatal and not args.allow_mismatch:
        raise ValueError(
            f'load_from={path!r} does not fit the model: {found.describe()}; name '
            'another one, or give --allow-mismatch'
        )
    if not found.whole:
        note(
            f'load_from={path}: {len(found.state_dict)} of the '
            f'{len(model.state_dict())} entries of the model are loaded; '
            f'{found.describe()}'
        )
    if cfg.get('resume') and not {'meta', 'message_hub'} <= checkpoint.keys():
        raise ValueError(
            f'load_from={path!r} has no training state: start from its weights with '
            f'--cfg-options load_from={path}'
        )
    if cfg.get('resume') and 'optimizer' not in checkpoint:
        warn(f'load_from={path!r} has no state of the optimizer: it begins anew')
    runs.hand_on(cfg, path, checkpoint)
    return None


def check_batch(cfg, model):
    """Raises an error for a batch of one image and a BatchNorm of one pixel, as in the
    pyramids of UperNet and PSPNet."""
    if cfg.train_dataloader.get('batch_size') != 1 or cfg.launcher != 'none':
        return
    model.train()  # a backbone may leave norms in eval mode
    for name, module in model.named_modules():
        first = module[0] if isinstance(module, nn.Sequential) and len(module) else None
        norms = any(isinstance(x, _BatchNorm) and x.training for x in module.modules())
        if norms and getattr(first, 'output_size', None) in (1, (1, 1)):
            raise ValueError(
                f'train_dataloader.batch_size=1: BatchNorm of {name}, behind a pooling '
                'to 1 x 1, needs two images or more'
            )


def prepare(args):
    """Prepares the config of the run, and checks its inputs; also returns what the
    backbone starts from."""
    cfg = runs.run_config(args)
    choose_precision(cfg, args.amp)
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

    def check_model(model):
        check_batch(cfg, model)
        return check_weights(cfg, args, model)

    found = runs.preflight(cfg, args, ('train', 'val'), check_model)
    runs.begin_run(cfg)
    return cfg, found


def watch_divergence(runner):
    """Ends the training with a DivergenceError where it diverges."""
    hooks = getattr(runner, 'hooks', ())
    hook = next((x for x in hooks if isinstance(x, DivergenceHook)), None)
    if hook is None:
        if not hasattr(runner, 'register_hook'):  # one of the user's own
            return nullcontext()
        hook = DivergenceHook()
        runner.register_hook(hook)
    return hook.watch(runner)


def main():
    args = ARGS or parse_args()
    with errors_in_one_line(*INPUT_ERRORS):
        cfg, found = prepare(args)
    # pretrained weights may be at an address that can't be reached
    errors = errors_in_one_line(ConnectionError, DivergenceError)
    with errors, runs.advice_on_downloads(cfg):
        runner = runs.make_runner(cfg)
        for hook in runner.hooks if found else ():
            if isinstance(hook, PretrainedBackboneHook):
                hook.comparison = found
        if cfg.get('resume') and hasattr(runner, 'register_hook'):
            runner.register_hook(ResumeReport(note, warn))
        with watch_divergence(runner):
            runner.train()
    if is_first_process():
        print('', *summary(runner, cfg, args.config), sep='\n')


if __name__ == '__main__':
    main()
