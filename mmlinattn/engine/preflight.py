"""Builds all parts of a run before it begins, so that bad input ends it early.

MMEngine's runner makes folders and files first, and finds a misspelled argument or a
damaged annotation file when it builds that part, perhaps after an epoch. Here, an
input that is sure to fail is an error, and one that looks wrong a warning.
"""

import copy
import io
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, Optional

from mmengine.config import Config
from mmengine.hooks import CheckpointHook, Hook
from mmengine.logging import MMLogger
from mmengine.model import PretrainedInit
from mmengine.registry import MODELS, DefaultScope
from mmengine.runner import Runner
from mmengine.visualization import Visualizer
from torch import nn

from mmlinattn.engine.part_errors import built_from, has_own_code, is_sure, reason
from mmlinattn.engine.preflight_data import (
    annotations,
    build_loader,
    channel_conflict,
    first_sample,
    problems,
)
from mmlinattn.engine.random_state import get_random_state, set_random_state
from mmlinattn.utils.config_keys import did_you_mean
from mmlinattn.utils.quiet import quiet
from mmlinattn.weights import read_checkpoint

# Keys that a runner takes together or not at all.
GROUPS = dict(
    train=('train_dataloader', 'train_cfg', 'optim_wrapper'),
    val=('val_dataloader', 'val_cfg', 'val_evaluator'),
    test=('test_dataloader', 'test_cfg', 'test_evaluator'),
)
# Keys of paramwise_cfg that these constructors of optimizers read.
CONSTRUCTORS = (None, 'mmlinattn.LayerDecayOptimWrapperConstructor')
PARAMWISE = {
    *('custom_keys', 'bypass_duplicate', 'bias_lr_mult', 'dcn_offset_lr_mult'),
    *(f'{kind}_decay_mult' for kind in ('bias', 'norm', 'dwconv', 'flat')),
    *('layer_decay_rate', '_scope_'),
}


def build_model(cfg: Config) -> nn.Module:
    """The model of a config, on the CPU, without its pretrained weights.

    Raises:
        TypeError: If ``cfg.model`` is neither a dictionary nor a model.
    """
    if not isinstance(cfg.model, (dict, nn.Module)):
        raise TypeError(f'model must be a dict, got {cfg.model!r}')
    model = copy.deepcopy(cfg.model)
    if isinstance(model, nn.Module):
        return model
    if cfg.get('data_preprocessor') is not None:
        model.setdefault('data_preprocessor', cfg.data_preprocessor)
    with DefaultScope.overwrite_default_scope(cfg.get('default_scope') or 'mmengine'):
        return MODELS.build(model)


def check_run(
    cfg: Config, path: str, task: str, warn: Callable[[str], object]
) -> Optional[nn.Module]:
    """Builds all parts of a run, and reads the first sample of each of its datasets.

    It writes nothing, and restores the state of the random generators. It warns about
    what looks wrong.

    Args:
        cfg (Config): The config of the run.
        path (str): Its path.
        task (str): 'train' or 'test'.
        warn (Callable): Takes the warnings.

    Returns:
        nn.Module: The model of the run, on the CPU, or None if only the run itself can
        build it.

    Raises:
        ValueError: If the config lacks a part, a part can't be built, or a first sample
            can't be read.
    """
    state, visualizers = get_random_state(), Visualizer._instance_dict.copy()
    scope = DefaultScope.overwrite_default_scope(cfg.get('default_scope') or 'mmengine')
    flight = Preflight(cfg, task, lambda text: warn(f'config={path!r}, {text}'))
    try:
        # datasets print
        with quiet(), redirect_stdout(io.StringIO()), scope:
            flight.check()
    except Refusal as error:
        raise ValueError(f'config={path!r}, {error}') from error.__cause__
    except Exception as error:  # from a check, not from a part
        flight.warn(f'the check ended early: {reason(error)}')
    finally:
        model = flight.model
        set_random_state(state)
        Visualizer._instance_dict.clear()
        Visualizer._instance_dict.update(visualizers)
        vars(flight).clear()  # its loops hold it, and so the data
    return model


class Refusal(ValueError):
    """The error of a run that is sure to fail."""


class Preflight(Runner):
    """A runner that only builds its parts."""

    def __init__(self, cfg: Config, task: str, warn: Callable) -> None:
        self.cfg, self.task, self.warn = cfg, task, warn
        self._experiment_name, self._log_dir = 'preflight', str(cfg.get('work_dir'))
        self._seed, self._randomness_cfg = 0, {}
        self._train_loop = self._val_loop = self._test_loop = None
        self.model = self._val_evaluator = None
        self.logger = MMLogger.get_current_instance()
        self.visualizer = Visualizer.get_instance('preflight')
        kind = cfg.get('runner_type') or 'Runner'
        self.standard = kind in ('Runner', Runner)
        self.known = self.standard or kind == 'FlexibleRunner'

    def check(self) -> None:
        """Runs all checks; raises a Refusal for a run that is sure to fail."""
        cfg, trains = self.cfg, self.task == 'train'
        wanted = ['model', *GROUPS[self.task]]
        for group in GROUPS.values():
            if any(cfg.get(key) is not None for key in group):
                wanted += group
        missing = dict.fromkeys(key for key in wanted if cfg.get(key) is None)
        if missing and self.known:
            raise Refusal(f'it has no {", ".join(missing)}')
        self.model = self.build(
            'model', lambda _: build_model(cfg), cfg.get('model'), own=False
        )
        conflict = '' if self.model is None else channel_conflict(self.model)
        if conflict and self.known and not has_own_code(cfg.get('model')):
            raise Refusal(conflict)
        self.check_data(self.task)
        if trains and cfg.get('val_dataloader') is not None:
            self.check_data('val')
        named = dict(cfg.get('default_hooks') or {})
        hooks = {f'default_hooks.{name}': hook for name, hook in named.items() if hook}
        for i, hook in enumerate(cfg.get('custom_hooks') or []):
            hooks[f'custom_hooks.{i}'] = hook
        for name, hook in hooks.items():
            self.build(name, self.build_hook, hook)
        own = has_own_code(cfg.get('model'))
        for node, _, found in built_from(cfg.get('model')) if trains else ():
            if PretrainedInit in found:
                self.build('model, init_cfg', read_source, node, own)
        if trains and self.standard and self.model is not None:
            self.check_optimizer(cfg.optim_wrapper)

    def build(
        self, name: str, build: Callable, cfg: Any, own: Optional[bool] = None
    ) -> Any:
        """Builds a part from a copy of its config; None if it fails but the run may
        not, as with a user's own code."""
        try:
            return build(copy.deepcopy(cfg))
        except Exception as error:
            text = f'{name}: {reason(error, cfg)}'
            own = has_own_code(cfg) if own is None else own
            if self.known and is_sure(text, own):
                raise Refusal(text) from error
            self.warn(text)
            return None

    def check_data(self, name: str) -> None:
        """Builds a data loader, its evaluator, and the loop over both; reads the first
        sample, and compares its labels with the model."""
        section, data = f'{name}_dataloader', f'{name}_dataloader.dataset'
        cfg, loop = self.cfg[section], self.cfg.get(f'{name}_cfg')
        loader = self.build(f'{section}{annotations(cfg)}', build_loader, cfg)
        setattr(self, f'_{section}', loader)
        if loader is not None:
            sample = self.build(
                f'{data}, first sample', lambda _: first_sample(loader), cfg
            )
            own = not self.known or has_own_code([self.cfg.get('model'), cfg])
            for text, fatal in problems(
                loader.dataset, sample, self.model, name == 'train'
            ):
                if fatal and not own:
                    raise Refusal(f'{data}: {text}')
                self.warn(f'{data}: {text}')
        parts = [loader, loop]
        if name != 'train':
            key = f'{name}_evaluator'
            parts.append(self.build(key, self.build_evaluator, self.cfg[key]))
            setattr(self, f'_{key}', parts[-1])
        if None not in parts and not has_own_code(loop):
            build = getattr(self, f'build_{name}_loop')
            setattr(self, f'_{name}_loop', self.build(f'{name}_cfg', build, loop))

    def build_hook(self, cfg: Any) -> Hook:
        """Builds a hook as a runner does, and checks the names of checkpoints."""
        self._hooks: list[Hook] = []
        self.register_hook(cfg)
        (hook,) = self._hooks
        if self.task == 'test' or not isinstance(hook, CheckpointHook):
            return hook
        names = {hook.filename_tmpl.format(step) for step in (1, 2)}
        if len(names) == 1 and hook.max_keep_ckpts > 0:
            raise ValueError(
                f'filename_tmpl={hook.filename_tmpl!r} names every checkpoint alike: '
                'removing an old one would delete the new one; put {} in it'
            )
        metrics = getattr(self._val_evaluator, 'metrics', ())
        begins = tuple(f'{x.prefix}/' if x.prefix else '' for x in metrics)
        for key in hook.save_best or []:
            if begins and key != 'auto' and not key.startswith(begins):
                names_begin = f'names of metrics begin with {" or ".join(begins)}'
                self.warn(f'save_best={key!r}: {names_begin}')
        return hook

    def check_optimizer(self, cfg: Any) -> None:
        """Builds the optimizer and the schedules."""
        given = cfg.get('paramwise_cfg') or {}
        if cfg.get('constructor') in CONSTRUCTORS:
            for key in given.keys() - PARAMWISE:
                likely = did_you_mean(key, PARAMWISE)
                self.warn(f'optim_wrapper.paramwise_cfg: nothing reads {key!r}{likely}')
        schedules = self.cfg.get('param_scheduler')
        self.optim_wrapper = self.build('optim_wrapper', self.build_optim_wrapper, cfg)
        if None not in (self.optim_wrapper, schedules, self._train_loop):
            self.build('param_scheduler', self.build_param_scheduler, schedules)


def read_source(cfg: dict) -> None:
    """Reads the file that a part starts from; the run itself reads an address."""
    if '://' not in cfg['checkpoint']:
        read_checkpoint(cfg['checkpoint'], 'checkpoint')
