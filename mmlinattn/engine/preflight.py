"""Builds all parts of a run before it begins, so that bad input ends it early.

MMEngine's runner makes folders and files first, and finds a misspelled argument or a
damaged annotation file when the part is built that has it, perhaps after an epoch.
The rule here: what can't but fail is refused, and what may be meant is said in a line.
"""

import copy
import inspect
import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, Optional

from mmengine.config import Config
from mmengine.hooks import CheckpointHook, Hook
from mmengine.logging import MMLogger
from mmengine.model import BaseModule, PretrainedInit
from mmengine.registry import MODELS, OPTIMIZERS, WEIGHT_INITIALIZERS, DefaultScope
from mmengine.runner import Runner
from mmengine.utils import is_list_of
from mmengine.visualization import Visualizer
from torch import nn

from mmlinattn.analysis import attentions_of
from mmlinattn.engine.hooks.oversmoothing_hook import OversmoothingHook
from mmlinattn.engine.part_errors import find_class, has_own_code, quiet, reason
from mmlinattn.engine.preflight_data import (
    annotations,
    build_loader,
    first_sample,
    problems,
)
from mmlinattn.engine.random_state import get_random_state, set_random_state
from mmlinattn.utils.config_keys import did_you_mean, misspelled_keys
from mmlinattn.weights import read_checkpoint

# The keys that a runner takes all of or none of.
GROUPS = dict(
    train=('train_dataloader', 'train_cfg', 'optim_wrapper'),
    val=('val_dataloader', 'val_cfg', 'val_evaluator'),
    test=('test_dataloader', 'test_cfg', 'test_evaluator'),
)
# The loops that a runner makes of a dictionary without a type.
LOOPS = dict(val='ValLoop', test='TestLoop')
TRAIN_LOOPS = {True: 'EpochBasedTrainLoop', False: 'IterBasedTrainLoop'}
PARAMWISE = {
    *('custom_keys', 'bypass_duplicate', 'bias_lr_mult', 'dcn_offset_lr_mult'),
    *(f'{kind}_decay_mult' for kind in ('bias', 'norm', 'dwconv', 'flat')),
}
CONSTRUCTORS = {
    'DefaultOptimWrapperConstructor': PARAMWISE,
    'mmlinattn.LayerDecayOptimWrapperConstructor': {*PARAMWISE, 'layer_decay_rate'},
}
# What is another in the run itself: devices, the group of processes, the runner.
NOT_YET = re.compile('cuda|gpu|process group|DryRunner', re.IGNORECASE)
# What no run builds, whoever wrote it.
NEVER = re.compile('unexpected keyword argument|is not in the .*registry')


def build_model(cfg: Config) -> nn.Module:
    """The model of a config, without its pretrained weights.

    Args:
        cfg (Config): The config.

    Returns:
        nn.Module: The model, on the CPU.

    Raises:
        TypeError: If its model is not a dictionary.
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

    Nothing is written, and random numbers go on as if nothing had been built. What may
    be wrong, but need not be, is said in lines.

    Args:
        cfg (Config): The config of the run.
        path (str): Its path.
        task (str): 'train' or 'test'.
        warn (Callable): Takes lines on what may be wrong.

    Returns:
        nn.Module: The model of the run, on the CPU, or None if only the run itself can
        build it.

    Raises:
        ValueError: If the config lacks a part, a part can't be built, or a first sample
            can't be read.
    """
    state, visualizers = get_random_state(), Visualizer._instance_dict.copy()
    scope = cfg.get('default_scope') or 'mmengine'
    within = DefaultScope.overwrite_default_scope(scope)
    flight = Preflight(cfg, task)
    try:
        # datasets print
        with quiet(), redirect_stdout(io.StringIO()), within:
            flight.check()
    except Refusal as error:
        raise ValueError(f'config={path!r}, {error}') from error.__cause__
    except Exception as error:  # of a check, not of a part
        flight.doubts.append(f'the check ended early: {reason(error)}')
    finally:
        set_random_state(state)
        Visualizer._instance_dict.clear()
        Visualizer._instance_dict.update(visualizers)
        if flight.runner is not None:
            vars(flight.runner).clear()  # its loops hold it, and so the data
    for doubt in flight.doubts:
        warn(f'config={path!r}, {doubt}')
    return flight.model


class Refusal(ValueError):
    """What is sure to fail."""


class DryRunner(Runner):
    """A runner of which only the methods are used that build parts."""

    def __init__(self, cfg: Config) -> None:
        self.cfg, self._hooks = cfg, []
        self._experiment_name, self._log_dir = 'preflight', str(cfg.get('work_dir'))
        self._seed, self._randomness_cfg = 0, {}
        self._train_loop = self._val_loop = self._test_loop = None
        self.logger = MMLogger.get_current_instance()
        self.visualizer = Visualizer.get_instance('preflight')


class Preflight:
    """The checks of one run.

    Args:
        cfg (Config): The config of the run.
        task (str): 'train' or 'test'.

    Attributes:
        model: The model, or None if it was not built.
        doubts: What may be wrong, a line each.
    """

    def __init__(self, cfg: Config, task: str) -> None:
        self.cfg, self.task = cfg, task
        self.runner: Any = None
        self.model: Optional[nn.Module] = None
        self.doubts: list[str] = []
        kind = cfg.get('runner_type') or 'Runner'
        self.standard = kind in ('Runner', Runner)
        self.known = self.standard or kind == 'FlexibleRunner'

    def check(self) -> None:
        """All checks.

        Raises:
            Refusal: If the run can't but fail.
        """
        self.runner = DryRunner(self.cfg)
        if self.known:
            self.check_groups()
        self.model = self.build(
            'model', lambda _: build_model(self.cfg), self.cfg.get('model'), sure=True
        )
        validates = self.task == 'train' and self.cfg.get('val_dataloader') is not None
        for name in [self.task, 'val'] if validates else [self.task]:
            self.check_data_of(name)
        for name, build in (
            ('visualizer', self.build_visualizer),
            ('log_processor', self.runner.build_log_processor),
            ('randomness', self.bind_randomness),
        ):
            if self.cfg.get(name) is not None:
                self.build(name, build, self.cfg[name])
        self.check_hooks()
        if self.task == 'train' and self.model is not None:
            if hasattr(self.model, 'init_weights'):
                self.check_init(self.model, 'model')
            if self.standard:
                self.check_optimizer()

    def build(
        self, name: str, build: Callable, cfg: Any, sure: Optional[bool] = None
    ) -> Any:
        """Builds a part from a copy of its config; None if that is in doubt.

        Whether it is sure to fail in the run, too, is by default whether no code of
        the user's own is in it.
        """
        try:
            return build(copy.deepcopy(cfg))
        except Exception as error:
            text = f'{name}: {reason(error, cfg)}'
            if sure is None:
                sure = not has_own_code(cfg) or bool(NEVER.search(text))
            if self.known and sure and not NOT_YET.search(text):
                raise Refusal(text) from error
            self.doubts.append(text)
            return None

    def check_groups(self) -> None:
        """Refuses a config that lacks a part of a run."""
        wanted = ['model', *GROUPS[self.task]]
        for group in GROUPS.values():
            if any(self.cfg.get(key) is not None for key in group):
                wanted += group
        missing = [key for key in wanted if self.cfg.get(key) is None]
        if missing:
            hints = misspelled_keys(self.cfg)
            likely = [key for key, hint in hints.items() if repr(missing[0]) in hint]
            raise Refusal(
                f'it has no {", ".join(dict.fromkeys(missing))}'
                + ''.join(f', but {key!r}' for key in likely)
            )

    def check_data_of(self, name: str) -> None:
        """Builds a data loader, what evaluates its data, and the loop over both."""
        section, evaluator = f'{name}_dataloader', f'{name}_evaluator'
        cfg = self.cfg[section]
        loader = self.build(f'{section}{annotations(cfg)}', build_loader, cfg)
        setattr(self.runner, f'_{section}', loader)
        parts = [loader]
        if loader is not None:
            self.check_labels(section, loader)
        if name != 'train':
            metrics = self.cfg[evaluator]
            parts.append(self.build(evaluator, self.runner.build_evaluator, metrics))
            setattr(self.runner, f'_{evaluator}', parts[-1])
        loop = self.cfg.get(f'{name}_cfg')
        if None not in (*parts, loop) and not has_own_code(loop):
            self.check_loop(name, loop)

    def check_labels(self, section: str, loader: Any) -> None:
        """Reads a loader's first sample, and compares its labels with the model."""
        cfg, data = self.cfg[section], f'{section}.dataset'
        sample = self.build(
            f'{data}, first sample', lambda _: first_sample(loader), cfg
        )
        own, trains = has_own_code([self.cfg.model, cfg]), section.startswith('train')
        if self.model is None:
            return
        found = self.build(
            f'{data}: its labels were not checked',
            lambda _: list(problems(loader, sample, self.model, trains)),
            None,
            sure=False,
        )
        for text, fatal in found or ():
            if fatal and self.known and not own:
                raise Refusal(f'{data}: {text}')
            self.doubts.append(f'{data}: {text}')

    def check_loop(self, name: str, cfg: Any) -> None:
        """Builds a loop of the libraries."""
        build = getattr(self.runner, f'build_{name}_loop')
        likely = cfg  # takes what is misspelled
        if isinstance(cfg, dict) and 'type' not in cfg:
            kind = LOOPS.get(name) or TRAIN_LOOPS[bool(cfg.get('by_epoch'))]
            likely = dict(cfg, type=kind)
        loop = self.build(f'{name}_cfg', lambda _: build(copy.deepcopy(cfg)), likely)
        setattr(self.runner, f'_{name}_loop', loop)
        if name == 'train' and loop is not None and loop.max_iters <= 0:
            self.doubts.append(f'train_cfg: it trains for {loop.max_iters} iterations')

    def build_visualizer(self, cfg: Any) -> None:
        """Builds a visualizer under another name than the run's."""
        if isinstance(cfg, dict):
            cfg = {**cfg, 'name': 'preflight of the config'}
        if not has_own_code(cfg):
            self.runner.build_visualizer(cfg)

    def bind_randomness(self, cfg: Any) -> None:
        """Gives a config to the function that sets seeds, without setting them."""
        if self.standard:
            inspect.signature(Runner.set_randomness).bind(None, **cfg)

    def check_hooks(self) -> None:
        """Builds all hooks."""
        named = (self.cfg.get('default_hooks') or {}).items()
        hooks = {f'default_hooks.{name}': hook for name, hook in named if hook}
        for i, hook in enumerate(self.cfg.get('custom_hooks') or []):
            hooks[f'custom_hooks.{i}'] = hook
        for name, cfg in hooks.items():
            hook = self.build(name, self.register, cfg)
            if self.task == 'train' and isinstance(hook, CheckpointHook):
                self.check_checkpoints(name, hook)
            if self.task == 'train' and isinstance(hook, OversmoothingHook):
                self.build(
                    name, lambda _: self.model and attentions_of(self.model), cfg
                )

    def register(self, cfg: Any) -> Hook:
        """Registers a hook with the runner, and returns it."""
        before = [*self.runner.hooks]
        self.runner.register_hook(cfg)
        (hook,) = (x for x in self.runner.hooks if x not in before)
        return hook

    def check_checkpoints(self, name: str, hook: CheckpointHook) -> None:
        """Says what a hook for checkpoints does that is seldom meant."""
        template = hook.filename_tmpl
        names = self.build(
            f'{name}.filename_tmpl={template!r}',
            lambda _: {template.format(step) for step in (1, 2)},
            {},
        )
        if names and len(names) == 1:
            text = f'{name}.filename_tmpl={template!r}: all checkpoints have one name'
            if hook.max_keep_ckpts > 0:
                raise Refusal(f'{text}, and an outdated one is removed; add {{}}')
            self.doubts.append(f'{text}, so that only the last one is kept')
        for key, text in (
            ('interval', 'no checkpoint is saved before the end'),
            ('max_keep_ckpts', 'all checkpoints are kept'),
        ):
            if getattr(hook, key) == 0:
                self.doubts.append(f'{name}.{key}=0: {text}; -1 says so too')
        metrics = getattr(getattr(self.runner, '_val_evaluator', None), 'metrics', ())
        for key in hook.save_best or []:
            if metrics and key != 'auto' and not any(gives(x, key) for x in metrics):
                self.doubts.append(
                    f'{name}.save_best={key!r}: no metric is of that name'
                )

    def check_init(self, module: nn.Module, name: str, sure: bool = True) -> None:
        """Builds what initializes a model's weights, and reads what they start from."""
        key, kind = f'{name}.init_cfg', type(module)
        sure = sure and kind.init_weights is BaseModule.init_weights
        cfgs = self.build(key, listed, getattr(module, 'init_cfg', None), sure)
        for cfg in cfgs or []:
            init = self.build(key, WEIGHT_INITIALIZERS.build, cfg, sure)
            if isinstance(init, PretrainedInit):
                source = dict(type=kind, checkpoint=init.checkpoint)
                self.build(key, read_source, source)
        for child_name, child in module.named_children():
            if hasattr(child, 'init_weights'):
                self.check_init(child, f'{name}.{child_name}', sure)

    def check_optimizer(self) -> None:
        """Builds the optimizer and the schedules."""
        cfg, runner = self.cfg.optim_wrapper, self.runner
        self.check_paramwise(cfg)
        runner.model = self.model
        built = self.build('optim_wrapper', self.build_optim_wrapper, cfg)
        schedules = self.cfg.get('param_scheduler')
        if built is None or schedules is None or runner._train_loop is None:
            return
        runner.optim_wrapper = built
        self.build('param_scheduler', runner._check_scheduler_cfg, schedules)
        if isinstance(schedules, (list, tuple)):
            named = {f'param_scheduler.{i}': x for i, x in enumerate(schedules)}
        else:
            named = {'param_scheduler': schedules}
        for name, schedule in named.items():
            found = self.build(name, runner.build_param_scheduler, schedule)
            for one in found if isinstance(found, list) else ():
                self.check_warmup(name, one, runner._train_loop)

    def build_optim_wrapper(self, cfg: Any) -> Any:
        """Builds an optimizer; MMEngine has no words for one that does not exist."""
        optimizer = cfg.get('optimizer')
        kind = optimizer.get('type') if isinstance(optimizer, dict) else None
        if isinstance(kind, str) and find_class(kind) is None:
            likely = did_you_mean(kind, OPTIMIZERS.module_dict)
            raise KeyError(f'{kind} is not in the registry of optimizers{likely}')
        return self.runner.build_optim_wrapper(cfg)

    def check_paramwise(self, cfg: Any) -> None:
        """Looks for options of parameters that MMEngine's constructor does not read."""
        kind = cfg.get('constructor', 'DefaultOptimWrapperConstructor')
        known = CONSTRUCTORS.get(kind, cfg.get('paramwise_cfg') or ())
        for key in cfg.get('paramwise_cfg') or ():
            if key not in known and key != '_scope_':
                likely = did_you_mean(key, known, 0.8)
                text = f'optim_wrapper.paramwise_cfg: nothing reads {key!r}{likely}'
                if likely:
                    raise Refusal(text)
                self.doubts.append(text)

    def check_warmup(self, name: str, schedule: Any, loop: Any) -> None:
        """Says that a warm-up does not end."""
        length = loop.max_epochs if schedule.by_epoch else loop.max_iters
        rises = type(schedule).__name__.startswith(('Linear', 'Constant'))
        if rises and schedule.begin == 0 and schedule.end > length > 0:
            text = f'{name}: the warm-up takes {schedule.end}'
            unit = 'epochs' if schedule.by_epoch else 'iterations'
            self.doubts.append(f'{text} {unit}, and the training {length}')


def listed(init_cfg: Any) -> list[dict]:
    """What initializes a part, one thing each."""
    cfgs = init_cfg or []
    cfgs = [cfgs] if isinstance(cfgs, dict) else cfgs
    if not is_list_of(cfgs, dict):
        raise TypeError(f'it must be a dict or a list of them, got {init_cfg!r}')
    return [{k: x for k, x in cfg.items() if k != 'override'} for cfg in cfgs]


def read_source(cfg: dict) -> None:
    """Reads the file that a part starts from; one at an address is left to the run."""
    if '://' not in cfg['checkpoint']:
        read_checkpoint(cfg['checkpoint'], 'checkpoint')


def gives(metric: Any, key: str) -> bool:
    """Whether a metric may give a value of a name."""
    prefix = getattr(metric, 'prefix', None)
    if prefix is None or not key.startswith(f'{prefix}/'):
        return prefix is None
    top = re.fullmatch(r'accuracy/top(\d+)', key)
    return not top or int(top[1]) in getattr(metric, 'topk', [int(top[1])])
