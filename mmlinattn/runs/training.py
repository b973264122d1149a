"""Trains a model of mmdet, mmseg or mmpretrain."""

import argparse
import os.path as osp
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Optional, Union

from mmengine.config import Config
from mmengine.device import get_device
from mmengine.hooks import Hook
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from mmlinattn.cli.run_arguments import is_first_process, note, run_options, warn
from mmlinattn.engine import (
    DivergenceError,
    DivergenceHook,
    PretrainedBackboneHook,
    ReleaseMemoryHook,
    check_pretrained,
    find_checkpoint,
)
from mmlinattn.utils import check_file, library_of
from mmlinattn.utils.files import drafts_of

from . import preparation as runs
from .estimate import TimeLeft
from .resume_report import ResumeReport
from .schedules import ScheduleReport
from .screen import best_of, summary
from .work_dir import EarlierBest, FullDiskError, full_disk_in_a_line, lock

# of a training that has begun: pretrained weights may be at an address that can't be
# reached
ERRORS = (ConnectionError, DivergenceError, FullDiskError)


class Trained(NamedTuple):
    """A training that has ended.

    Attributes:
        checkpoint (Path, optional): The best checkpoint by the validations, or the last
            one.
        work_dir (Path): The folder of the training, with curves, checkpoints, the whole
            config and logs.
        summary (list[str]): Lines on what there is, and the next commands.
    """

    checkpoint: Optional[Path]
    work_dir: Path
    summary: list[str]


def train(
    config: Union[str, Path],
    work_dir: Union[str, Path, None] = None,
    cfg_options: Optional[Mapping[str, Any]] = None,
    *,
    amp: bool = False,
    resume: Optional[str] = None,
    auto_scale_lr: bool = False,
    allow_mismatch: bool = False,
    trust: bool = False,
    preflight: bool = True,
    check_photos: bool = False,
    launcher: str = 'none',
) -> Trained:
    """Train a model from a config of mmdet, mmseg, mmpretrain or mmlinattn, as the
    command ``mmlinattn train`` does: data, model and weights are checked before.

    In this process, checkpoints are read without running code in them from then on, and
    mmcv uses the operators of :mod:`mmlinattn.ops` if it has none: call it before
    anything imports ``mmcv.ops``.

    Args:
        config (str | Path): A file, which may inherit from ``mmlinattn::``.
        work_dir (str | Path, optional): The folder to write to. Default: that of the
            config, or ``work_dirs/NAME``.
        cfg_options (Mapping, optional): Entries of the config to override, by dotted
            key, such as ``{'train_dataloader.batch_size': 4}``.
        amp (bool): Automatic mixed precision, on a GPU.
        resume (str, optional): A checkpoint to resume from, or 'auto' for the last one
            in ``work_dir``.
        auto_scale_lr (bool): Scale the learning rate by the batch size.
        allow_mismatch (bool): Accept a checkpoint that does not fit the model.
        trust (bool): Unpickle everything in checkpoints, which can run any code.
        preflight (bool): Build the model, and read the first samples, beforehand.
        check_photos (bool): Read every photo beforehand.
        launcher (str): 'none', 'pytorch', 'slurm' or 'mpi'.

    Returns:
        Trained: Its best checkpoint, its folder, and lines on both.

    Raises:
        FileNotFoundError: If the config, a checkpoint or a file of the data is missing.
        KeyError: If the config lacks an entry.
        ValueError: If the config, its data, and its weights do not fit each other.
        FileExistsError: If another training writes to the folder.
        DivergenceError: If the loss is no number in several iterations.
        ConnectionError: If weights can't be downloaded.
        FullDiskError: If the disk is full.
    """
    args = run_options(
        config,
        work_dir,
        cfg_options,
        amp=amp,
        resume=resume,
        auto_scale_lr=auto_scale_lr,
        allow_mismatch=allow_mismatch,
        trust=trust,
        no_preflight=not preflight,
        check_photos=check_photos,
        launcher=launcher,
    )
    cfg, comparison = prepare(args)
    return run(cfg, comparison, args)


def resume(cfg: Config, checkpoint: str) -> None:
    """Make the run resume from the path or address of a checkpoint or, with 'auto',
    from the last one in the work directory."""
    if checkpoint == 'auto':
        last = find_checkpoint(cfg.work_dir)
        if last is None:
            note(f'--resume finds no checkpoint in {cfg.work_dir}: training begins')
            cfg.resume = False
            return
        note(f'--resume continues from {last}')
        checkpoint = last
    check_file('load_from', checkpoint)
    cfg.resume, cfg.load_from = True, checkpoint


def choose_precision(cfg: Config, amp: bool) -> None:
    """Set mixed precision on a GPU, and none on a CPU."""
    wrapper = cfg.get('optim_wrapper')
    if not isinstance(wrapper, dict):
        return
    if amp:
        wrapper['type'] = 'AmpOptimWrapper'
        wrapper.setdefault('loss_scale', 'dynamic')
    if runs.drop_amp(cfg, get_device()):
        warn('mixed precision needs a GPU, and there is none: float32 is used')


def check_weights(cfg: Config, args: argparse.Namespace, model: nn.Module) -> Any:
    """Raise an error for weights that do not fit the run, and hand on what it read;
    returns what the backbone starts from, or None."""
    path = cfg.get('load_from')
    if path:
        # folders are checkpoints of other runners, which have their own kinds
        if not osp.isdir(path):
            check_checkpoint(cfg, path, model, args.allow_mismatch)
        return None
    if cfg.get('resume'):  # a resumed run needs no pretrained weights
        return None
    is_named = 'pretrained' in (args.cfg_options or {})
    comparison = check_pretrained(cfg, model, is_named, warn)
    # several processes read them at once, because they wait for each other
    return comparison if cfg.launcher == 'none' else None


def check_checkpoint(
    cfg: Config, path: str, model: nn.Module, allow_mismatch: bool
) -> None:
    """Compare the checkpoint that a run starts from with its model, and hand it on.

    A resumed training needs its whole model. One that starts from ``load_from`` may
    have another head, or other parts, which are listed in one line.

    Raises:
        ValueError: If it does not fit.
    """
    checkpoint, fitted = runs.load_checkpoint('load_from', path, model)
    is_unfit = fitted.broken or not fitted.state_dict
    if cfg.get('resume') and not fitted.whole:
        is_unfit = True
    if is_unfit and not allow_mismatch:
        raise ValueError(
            f'load_from={path!r} does not fit the model: {fitted.describe()}; name '
            'another one, or give --allow-mismatch'
        )
    if not fitted.whole:
        note(
            f'load_from={path}: {len(fitted.state_dict)} of the '
            f'{len(model.state_dict())} entries of the model are loaded; '
            f'{fitted.describe()}'
        )
    if cfg.get('resume'):
        check_training_state(path, checkpoint)
    runs.hand_on(cfg, path, checkpoint)


def check_training_state(path: str, checkpoint: dict[str, Any]) -> None:
    """Raise a ValueError for a checkpoint that no training can resume from, and warn of
    one without a state of the optimizer."""
    if not {'meta', 'message_hub'} <= checkpoint.keys():
        raise ValueError(
            f'load_from={path!r} has no training state: start from its weights with '
            f'--cfg-options load_from={path}'
        )
    if 'optimizer' not in checkpoint:
        warn(f'load_from={path!r} has no state of the optimizer: it begins anew')


def check_batch(cfg: Config, model: nn.Module) -> None:
    """Raise an error for a batch of one image and a BatchNorm of one pixel, as in the
    pyramids of UperNet and PSPNet."""
    if cfg.train_dataloader.get('batch_size') != 1 or cfg.launcher != 'none':
        return
    model.train()  # a backbone may leave norms in eval mode
    for name, module in model.named_modules():
        first = module[0] if isinstance(module, nn.Sequential) and len(module) else None
        has_norms = any(
            isinstance(part, _BatchNorm) and part.training for part in module.modules()
        )
        if has_norms and getattr(first, 'output_size', None) in (1, (1, 1)):
            raise ValueError(
                f'train_dataloader.batch_size=1: BatchNorm of {name}, behind a pooling '
                'to 1 x 1, needs two images or more'
            )


def prepare(args: argparse.Namespace) -> tuple[Config, Any]:
    """Prepare the config of the run, and check its inputs; also returns what the
    backbone starts from."""
    cfg = runs.run_config(args)
    if drafts_of(Path(args.config)):
        warn(
            f'new-config did not end for {args.config}: the config and its data are '
            'those from before'
        )
    runs.check_loop(cfg, args, 'train')
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

    def check_model(model: nn.Module) -> Any:
        check_batch(cfg, model)
        return check_weights(cfg, args, model)

    comparison = runs.preflight(cfg, args, ('train', 'val'), check_model)
    runs.begin_run(cfg)
    if is_first_process():
        lock(cfg.work_dir)
    return cfg, comparison


def has_new_length(args: argparse.Namespace) -> bool:
    """Return whether options change the number of a training's steps."""
    return any(
        key.startswith(('train_cfg', 'train_dataloader'))
        for key in args.cfg_options or ()
    )


def watch_divergence(runner: Any) -> AbstractContextManager:
    """End the training with a DivergenceError where it diverges."""
    for hook in getattr(runner, 'hooks', ()):
        if isinstance(hook, DivergenceHook):
            return hook.watch(runner)
    if not hasattr(runner, 'register_hook'):  # one of the user's own
        return nullcontext()
    hook = DivergenceHook()
    runner.register_hook(hook)
    return hook.watch(runner)


def add_hooks(cfg: Config, runner: Any, args: argparse.Namespace) -> None:
    """Add the hooks of this tool to a runner, unless it is one of the user's own."""
    if not hasattr(runner, 'register_hook'):
        return
    hooks = getattr(runner, 'hooks', ())
    if not any(isinstance(hook, ReleaseMemoryHook) for hook in hooks):
        runner.register_hook(ReleaseMemoryHook())
    runner.register_hook(EarlierBest(note, warn))
    if is_first_process():
        runner.register_hook(TimeLeft(note))
    if cfg.get('resume'):
        runner.register_hook(ResumeReport(note, warn))
    else:
        say = note if has_new_length(args) else None
        runner.register_hook(ScheduleReport(warn, say))


def run(
    cfg: Config, comparison: Any, args: argparse.Namespace, hooks: Sequence[Hook] = ()
) -> Trained:
    """Train by a config that :func:`prepare` has prepared, from what it returned, with
    more ``hooks``."""
    full = full_disk_in_a_line(cfg.work_dir, 'go on with --resume')
    with full, runs.advice_on_downloads(cfg):
        runner = runs.make_runner(cfg)
        for hook in runner.hooks if comparison else ():
            if isinstance(hook, PretrainedBackboneHook):
                hook.comparison = comparison
        add_hooks(cfg, runner, args)
        for hook in hooks:
            runner.register_hook(hook, priority='VERY_LOW')
        with watch_divergence(runner):
            runner.train()
    if not is_first_process():
        return Trained(None, Path(cfg.work_dir), [])
    draws = not runs.what_else(runner.model, library_of(cfg))
    lines = summary(runner, cfg, args.config, runs.export_options(cfg), draws)
    path, _ = best_of(runner)
    return Trained(Path(path) if path else None, Path(cfg.work_dir), lines)
