"""Builds all parts of a run before it begins, so that bad input ends it early.

MMEngine's runner makes folders and files first, and finds a misspelled argument or a
damaged annotation file when the part is built that has it, perhaps after an epoch.
"""

import copy
import inspect
import io
from collections.abc import Mapping
from contextlib import redirect_stdout
from typing import Any, Callable

from mmengine.config import Config
from mmengine.evaluator import Evaluator
from mmengine.optim import build_optim_wrapper
from mmengine.registry import (
    EVALUATOR,
    HOOKS,
    LOG_PROCESSORS,
    LOOPS,
    MODELS,
    OPTIMIZERS,
    PARAM_SCHEDULERS,
    VISUALIZERS,
    DefaultScope,
)
from mmengine.runner import Runner
from torch import nn

from mmlinattn.engine.part_errors import part, quiet
from mmlinattn.engine.preflight_data import build_loader
from mmlinattn.engine.random_state import get_random_state, set_random_state

REQUIRED = dict(
    train=('model', 'train_dataloader', 'train_cfg', 'optim_wrapper'),
    test=('model', 'test_dataloader', 'test_cfg', 'test_evaluator'),
)
VALIDATION = ('val_dataloader', 'val_cfg', 'val_evaluator')
LOOP_TYPES = dict(val='ValLoop', test='TestLoop')
# what a runner takes where a config has nothing
DEFAULTS = dict(randomness=dict(seed=None))


def build_model(cfg: Config) -> nn.Module:
    """The model of a config, without its pretrained weights.

    Args:
        cfg (Config): The config.

    Returns:
        nn.Module: The model, on the CPU.

    Raises:
        TypeError: If its model is not a dictionary.
    """
    if not isinstance(cfg.model, dict):
        raise TypeError(f'model must be a dict, got {cfg.model!r}')
    model = copy.deepcopy(cfg.model)
    if cfg.get('data_preprocessor') is not None:
        model.setdefault('data_preprocessor', cfg.data_preprocessor)
    with DefaultScope.overwrite_default_scope(cfg.get('default_scope', 'mmengine')):
        return MODELS.build(model)


def check_run(cfg: Config, path: str, task: str) -> nn.Module:
    """Builds all parts of a run, and reads the first sample of each of its datasets.

    Nothing is written, and random numbers go on as if nothing had been built.

    Args:
        cfg (Config): The config of the run.
        path (str): Its path.
        task (str): 'train' or 'test'.

    Returns:
        nn.Module: The model of the run, on the CPU.

    Raises:
        KeyError: If the config lacks a part.
        ValueError: If a part can't be built, or a first sample can't be read.
    """
    check_keys_of(cfg, path, task)
    state = get_random_state()
    scope = cfg.get('default_scope') or 'mmengine'
    try:
        # datasets print
        within = DefaultScope.overwrite_default_scope(scope)
        with quiet(), redirect_stdout(io.StringIO()), within:
            return build_parts(cfg, task)
    except ValueError as error:
        raise ValueError(f'config={path!r}, {error}') from error
    finally:
        set_random_state(state)


def check_keys_of(cfg: Config, path: str, task: str) -> None:
    """Raises an error for a config that lacks a part of a run.

    Raises:
        KeyError: If there is such a part.
    """
    wanted = REQUIRED[task]
    if task == 'train' and any(cfg.get(key) is not None for key in VALIDATION):
        wanted += VALIDATION
    missing = [key for key in wanted if cfg.get(key) is None]
    if missing:
        raise KeyError(
            f'config={path!r} has no {", ".join(missing)}; tools/{task}.py needs '
            f'{", ".join(wanted)}'
        )


def build_parts(cfg: Config, task: str) -> nn.Module:
    """Builds each part, and returns the model."""
    with part('model'):
        model = build_model(cfg)
    validates = task == 'train' and cfg.get('val_dataloader') is not None
    loaders = [
        build_loader(cfg, name, model)
        for name in ([task, 'val'] if validates else [task])
    ]
    for name in ['val'] if validates else [task] if task == 'test' else []:
        with part(f'{name}_evaluator'):
            build_evaluator(copy.deepcopy(cfg[f'{name}_evaluator']))
    for name in [task, 'val'] if validates else [task]:
        with part(f'{name}_cfg'):
            check_loop(name, cfg[f'{name}_cfg'])
    # hooks look for a visualizer
    for name, build in (
        ('visualizer', build_visualizer),
        ('log_processor', build_log_processor),
        ('randomness', check_arguments(Runner.set_randomness)),
    ):
        with part(name):
            build(cfg.get(name) or DEFAULTS.get(name, {}))
    build_hooks(cfg)
    if task == 'train' and 'runner_type' not in cfg:
        build_optimizer(cfg, model, len(loaders[0]))
    return model


def build_evaluator(cfg: Any) -> None:
    """Builds the metrics of a config, as a runner does."""
    if isinstance(cfg, dict) and 'metrics' in cfg:
        EVALUATOR.build(dict(type='Evaluator', **cfg) if 'type' not in cfg else cfg)
    else:
        Evaluator(cfg)


def check_arguments(function: Callable, *first: Any) -> Callable[[Mapping], None]:
    """What raises an error for arguments that a function does not take."""

    def check(cfg: Mapping) -> None:
        arguments = {key: value for key, value in cfg.items() if key != 'type'}
        try:
            inspect.signature(function).bind(None, *first, **arguments)
        except TypeError as error:
            names = [*inspect.signature(function).parameters][1 + len(first) :]
            raise ValueError(f'{error}; it takes {", ".join(names)}') from None

    return check


def check_loop(name: str, cfg: Any) -> None:
    """Raises an error for a loop that can't be built."""
    if not isinstance(cfg, dict):
        raise TypeError(f'it must be a dict, got {cfg!r}')
    kind = cfg.get('type') or LOOP_TYPES.get(name)
    if kind is None:
        kind = 'EpochBasedTrainLoop' if cfg.get('by_epoch') else 'IterBasedTrainLoop'
    loop = LOOPS.get(kind) if isinstance(kind, str) else kind
    if loop is None:
        raise ValueError(f'there is no loop of type {kind!r}')
    # a loop gets its runner and data loader from the runner
    given = [None, None, None] if LOOP_TYPES.get(name) else [None, None]
    if 'by_epoch' in cfg and 'type' not in cfg:
        cfg = {key: value for key, value in cfg.items() if key != 'by_epoch'}
    check_arguments(loop.__init__, *given)(cfg)


def build_visualizer(cfg: Mapping) -> None:
    """Builds a visualizer without its backends, which make files."""
    arguments = {key: value for key, value in cfg.items() if key != 'vis_backends'}
    VISUALIZERS.build({'type': 'Visualizer', **arguments, 'name': 'preflight'})


def build_log_processor(cfg: Mapping) -> None:
    """Builds what formats the log."""
    LOG_PROCESSORS.build({'type': 'LogProcessor', **cfg})


def build_hooks(cfg: Config) -> None:
    """Builds all hooks."""
    named = dict(cfg.get('default_hooks') or {})
    named = {f'default_hooks.{name}': hook for name, hook in named.items()}
    for i, hook in enumerate(cfg.get('custom_hooks') or []):
        named[f'custom_hooks.{i}'] = hook
    for name, hook in named.items():
        if isinstance(hook, dict):
            with part(name):
                arguments = {key: x for key, x in hook.items() if key != 'priority'}
                HOOKS.build(arguments)


def build_optimizer(cfg: Config, model: nn.Module, epoch_length: int) -> None:
    """Builds the optimizer and the schedules."""
    with part('optim_wrapper'):
        kind = cfg.optim_wrapper.get('optimizer', {}).get('type')
        if isinstance(kind, str) and OPTIMIZERS.get(kind) is None:
            raise ValueError(f'there is no optimizer of type {kind!r}')
        optim_wrapper = build_optim_wrapper(model, copy.deepcopy(cfg.optim_wrapper))
    schedulers = cfg.get('param_scheduler') or []
    if isinstance(schedulers, dict):
        schedulers = [schedulers]
    for i, scheduler in enumerate(schedulers):
        if isinstance(scheduler, dict):
            with part(f'param_scheduler.{i}'):
                arguments = dict(copy.deepcopy(scheduler))
                arguments.setdefault('end', 2**30)
                PARAM_SCHEDULERS.build(
                    arguments,
                    default_args=dict(
                        optimizer=optim_wrapper, epoch_length=epoch_length
                    ),
                )
