"""Builds what a run needs besides its model and data sets, as its runner does later:
optimizer, data loaders, schedules, evaluators, hooks and loops."""

import copy
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any, Optional

from mmengine.config import Config
from mmengine.hooks import CheckpointHook
from mmengine.optim import OptimWrapper, OptimWrapperDict, build_optim_wrapper
from mmengine.registry import (
    EVALUATOR,
    HOOKS,
    LOG_PROCESSORS,
    LOOPS,
    METRICS,
    PARAM_SCHEDULERS,
    VISBACKENDS,
    VISUALIZERS,
    WEIGHT_INITIALIZERS,
    Registry,
)
from mmengine.runner import (
    EpochBasedTrainLoop,
    IterBasedTrainLoop,
    Runner,
    TestLoop,
    ValLoop,
)
from mmengine.utils.dl_utils import set_multi_processing
from torch import nn

from mmlinattn.utils.options import (
    OF_BUILDERS,
    OptionError,
    is_open,
    likely,
    signature_of,
)

from .building import error_in
from .evaluators import metrics_of
from .registries import find, scope_of
from .samples import LIBRARIES
from .scores import check_scores

# Options of metrics that make folders when the metric is built.
FOLDERS = {'outfile_prefix', 'output_dir'}


def check_parts(
    cfg: Config,
    model: nn.Module,
    datasets: Mapping[str, Any],
    warn: Callable[[str], object],
) -> None:
    """Build the parts of a run on the CPU and throws them away. It writes nothing.

    Args:
        cfg (Config): The config.
        model (nn.Module): Its model.
        datasets (Mapping[str, Any]): Its data sets by 'train', 'val' and 'test', which
            are the loops that the run has.
        warn (Callable): Takes warnings.

    Raises:
        ValueError: If a part can't be built, with its key and, for a misspelled option
            or type, the likely name.
    """
    check_hooks(cfg, warn)
    check_runner(cfg)
    for name in datasets:
        check_loop(cfg, name)
        if name != 'train':
            check_evaluator(cfg, f'{name}_evaluator')
    loaders = {
        name: build_loader(cfg, f'{name}_dataloader', dataset)
        for name, dataset in datasets.items()
    }
    if 'train' in datasets:
        if 'val' in datasets:
            check_scores(cfg, warn)
        check_initialization(cfg, model)
        check_optimizer(cfg, model, loaders['train'])


def build_loader(cfg: Config, key: str, dataset: Any) -> Any:
    """Return the data loader of a config for a data set that is built already."""
    loader = cfg[key]
    if not isinstance(loader, dict):
        return loader
    with error_in(cfg, key), held(dataset):
        return Runner.build_dataloader(dict(loader, dataset=dataset))


@contextmanager
def held(dataset: Any) -> Iterator[None]:
    """Keep a data set from being copied, as MMEngine does with configs."""
    if not hasattr(dataset, '__dict__'):  # a list
        yield
        return
    dataset.__deepcopy__ = lambda memo: dataset
    try:
        yield
    finally:
        del dataset.__deepcopy__


def check_optimizer(cfg: Config, model: nn.Module, loader: Any) -> None:
    """Build the optimizer and its schedules. Strategies of MMEngine's FlexibleRunner
    make optimizers in ways of their own."""
    settings = cfg.get('optim_wrapper')
    usual = cfg.get('runner_type', 'Runner') in ('Runner', Runner)
    if not isinstance(settings, dict) or not usual or not built_by_type(settings):
        return
    try:
        with error_in(cfg, 'optim_wrapper'):
            wrapper = build_optim_wrapper(model, copy.deepcopy(settings))
            if getattr(wrapper, 'clip_grad_kwargs', None):
                compare(wrapper.clip_func, wrapper.clip_grad_kwargs)
    except ValueError as error:
        # an optimizer may be shared by the processes of a run
        if 'process group' in str(error):
            return
        raise
    if not isinstance(wrapper, OptimWrapperDict) and hasattr(loader, '__len__'):
        check_schedules(cfg, wrapper, len(loader))


def check_schedules(cfg: Config, wrapper: OptimWrapper, length: int) -> None:
    """Build the schedules of an optimizer, for epochs of a length."""
    schedules = cfg.get('param_scheduler') or []
    schedules = schedules if isinstance(schedules, (list, tuple)) else [schedules]
    with error_in(cfg, 'param_scheduler'):
        for schedule in schedules:
            if isinstance(schedule, dict):
                options = dict(optimizer=wrapper, epoch_length=length)
                end = default_end(cfg, schedule, length)
                schedule = copy.deepcopy(schedule)
                if end is not None:
                    schedule.setdefault('end', end)
                PARAM_SCHEDULERS.build(schedule, default_args=options)


def built_by_type(settings: Mapping[str, Any]) -> bool:
    """Return whether an optimizer is a config, or made by a constructor."""
    return isinstance(settings.get('optimizer'), dict) or 'constructor' in settings


def default_end(cfg: Config, schedule: Mapping[str, Any], length: int) -> Optional[int]:
    """Return where MMEngine ends a schedule that names no end: with the run."""
    loop = cfg.get('train_cfg') or {}
    epochs, iterations = loop.get('max_epochs'), loop.get('max_iters')
    if schedule.get('by_epoch', True):
        return epochs or 1
    return iterations or (epochs * length if epochs else None)


def check_hooks(cfg: Config, warn: Callable[[str], object]) -> None:
    """Build the hooks of the libraries and of ours; of others, options are compared
    with those that the class has."""
    defaults = {
        name: hook
        for name, hook in (cfg.get('default_hooks') or {}).items()
        if hook is not None
    }
    for name, hook in defaults.items():
        if isinstance(hook, dict) and 'type' not in hook:
            choice = likely(name, {*defaults} - {name})
            text = f'; did you mean default_hooks.{choice}?' if choice else ''
            raise ValueError(f'default_hooks.{name} has no type{text}')
    refuse_swallowed(cfg, 'default_hooks.checkpoint', defaults.get('checkpoint'))
    with error_in(cfg, 'default_hooks'):
        for name, hook in defaults.items():
            build_quietly(HOOKS, hook)
            warn_of_swallowed(f'default_hooks.{name}', hook, warn)
    with error_in(cfg, 'custom_hooks'):
        for hook in cfg.get('custom_hooks') or ():
            build_quietly(HOOKS, hook)


def warn_of_swallowed(key: str, hook: Any, warn: Callable[[str], object]) -> None:
    """Warn of a misspelled option of a hook that takes options of any name, as
    MMEngine's for checkpoints does."""
    kind = find(HOOKS, hook.get('type')) if isinstance(hook, dict) else None
    names, takes_any = signature_of(kind) if kind else (set(), False)
    for name in hook if takes_any else ():
        choice = likely(name, names, 0.8)
        if choice not in (None, name) and name not in {*names, *OF_BUILDERS}:
            warn(f'{key}.{name} has no effect; did you mean {choice!r}?')


def refuse_swallowed(cfg: Config, key: str, hook: Any) -> None:
    """Refuse options of the checkpoint hook that neither it nor the runner has.

    The hook hands its other options to the runner when it saves.
    """
    if not isinstance(hook, dict) or cfg.get('runner_type', 'Runner') != 'Runner':
        return
    with scope_of(cfg):
        kind = find(HOOKS, hook.get('type'))
    if not isinstance(kind, type) or not issubclass(kind, CheckpointHook):
        return
    names = signature_of(kind)[0] | signature_of(Runner.save_checkpoint)[0]
    for name in hook.keys() - names - OF_BUILDERS - {'priority'}:
        choice = likely(name, names)
        text = f'{key}.{name}={hook[name]!r}: {kind.__name__} has no such option'
        raise ValueError(f'{text}; did you mean {choice!r}?' if choice else text)


def build_quietly(registry: Registry, part: Any) -> None:
    """Build a part of a library's or of ours; of another one, its options are compared
    with its class."""
    if not isinstance(part, dict):
        return
    part = {key: value for key, value in part.items() if key != 'priority'}
    kind = find(registry, part.get('type'))
    own = getattr(kind, '__module__', '').partition('.')[0]
    if kind is not None and own not in (*LIBRARIES, 'mmlinattn'):
        compare(kind, part)
        return
    try:
        registry.build(copy.deepcopy(part))
    except RuntimeError as error:
        if 'get_instance' not in str(error):  # a runner's visualizer is not there yet
            raise


def compare(
    kind: Any, part: Mapping[str, Any], supplied: Set[str] = frozenset()
) -> None:
    """Raise an OptionError as a call would, for options that a class or a function does
    not have; ``supplied`` are those that it gets elsewhere. It calls nothing."""
    if is_open(kind):
        return
    known = {*signature_of(kind)[0], *supplied, *OF_BUILDERS}
    for name in part:
        if name not in known:
            raise OptionError(kind, name)


def check_runner(cfg: Config) -> None:
    """Compare the options of a runner's smaller parts with those that there are."""
    with error_in(cfg, 'log_processor'):
        processor = cfg.get('log_processor')
        if isinstance(processor, dict):
            LOG_PROCESSORS.build({'type': 'LogProcessor', **copy.deepcopy(processor)})
    with error_in(cfg, 'visualizer'):
        visualizer = cfg.get('visualizer')
        if isinstance(visualizer, dict):
            compare_typed(VISUALIZERS, visualizer)
            for backend in visualizer.get('vis_backends') or ():
                if isinstance(backend, dict):
                    compare_typed(VISBACKENDS, backend)
    with error_in(cfg, 'env_cfg'):
        environment = cfg.get('env_cfg') or {}
        compare(set_multi_processing, environment.get('mp_cfg') or {})
    with error_in(cfg, 'randomness'):
        compare(Runner.set_randomness, cfg.get('randomness') or {})


def compare_typed(registry: Registry, part: Mapping[str, Any]) -> None:
    """Compare options with the class of a part's type; a KeyError if it is unknown."""
    kind = find(registry, part.get('type'))
    if kind is None:
        raise KeyError(
            f'{part.get("type")} is not in the {registry.scope}::{registry.name} '
            'registry'
        )
    # a visualizer's name and folder are the run's
    compare(kind, part, {'name', 'save_dir'})


def check_loop(cfg: Config, name: str) -> None:
    """Compare the options of a loop, 'train', 'val' or 'test', with its class; a
    ValueError for a length of 0."""
    key = f'{name}_cfg'
    loop = cfg.get(key)
    if not isinstance(loop, dict):
        return
    with error_in(cfg, key):
        if 'type' in loop:
            compare_typed_loop(loop)
        elif name == 'train':
            kind = EpochBasedTrainLoop if loop.get('by_epoch') else IterBasedTrainLoop
            compare(kind, loop)
        else:
            compare(ValLoop if name == 'val' else TestLoop, loop)
    own = getattr(find(LOOPS, loop.get('type')), '__module__', 'mmengine')
    if own.partition('.')[0] not in LIBRARIES:
        return
    interval = loop.get('val_interval', 1)
    if not is_count(interval):
        raise ValueError(
            f'{key}.val_interval={interval!r} must be a positive integer; val_cfg=None '
            'val_dataloader=None val_evaluator=None trains without a validation'
        )
    for length in ('max_epochs', 'max_iters'):
        if length in loop and not is_count(loop[length]):
            raise ValueError(
                f'{key}.{length}={loop[length]!r} must be a positive integer'
            )


def is_count(value: Any) -> bool:
    """Return whether a value is a positive integer, of MMEngine's kinds of numbers."""
    return isinstance(value, (int, float)) and value >= 1 and value == int(value)


def compare_typed_loop(loop: Mapping[str, Any]) -> None:
    """Compare the options of a loop that has a type."""
    kind = find(LOOPS, loop['type'])
    if kind is None:
        raise KeyError(f'{loop["type"]} is not in the mmengine::loop registry')
    compare(kind, loop)


def check_evaluator(cfg: Config, key: str) -> None:
    """Build the metrics of an evaluator, except those that make folders."""
    evaluator = cfg.get(key)
    with error_in(cfg, key):
        metrics = metrics_of(evaluator)
        if isinstance(evaluator, dict) and 'metrics' in evaluator:
            # several metrics, unless a metric has an option of this name
            is_known = find(EVALUATOR, evaluator.get('type', 'Evaluator')) is not None
            metrics = metrics if is_known else [evaluator]
        for metric in metrics:
            kind = find(METRICS, metric.get('type'))
            if kind is not None and FOLDERS & metric.keys():
                compare(kind, metric)
            else:
                build_quietly(METRICS, metric)


def check_initialization(cfg: Config, model: nn.Module) -> None:
    """Raise a ValueError for an ``init_cfg`` of an unknown type, at which a run ends
    when it initializes its model."""
    with error_in(cfg, 'model'):
        for kind in initializers_of(model):
            if find(WEIGHT_INITIALIZERS, kind) is None:
                name = WEIGHT_INITIALIZERS.name
                raise KeyError(f'{kind} is not in the mmengine::{name} registry')


def initializers_of(model: nn.Module) -> set[str]:
    """Return types of the ``init_cfg`` of a model's modules, of the libraries and ours;
    one of the user's own may read it in another way."""
    kinds = set()
    for module in model.modules():
        entries = getattr(module, 'init_cfg', None) or ()
        if type(module).__module__.partition('.')[0] in (*LIBRARIES, 'mmlinattn'):
            for entry in [entries] if isinstance(entries, dict) else entries:
                if isinstance(entry, dict) and isinstance(entry.get('type'), str):
                    kinds.add(entry['type'])
    return kinds
