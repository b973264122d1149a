"""What training and testing have in common: the config, checks, and the runner."""

import argparse
import copy
import logging
import os
import os.path as osp
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.config import Config, ConfigDict
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import DATASETS, RUNNERS
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import DataLoader

from mmlinattn import deployment, ops
from mmlinattn.cli.label_files import changed_files
from mmlinattn.cli.parser import error_of
from mmlinattn.cli.run_arguments import is_first_process, note, warn
from mmlinattn.engine import (
    build_model,
    check_data,
    check_inherited,
    check_parts,
    check_strides,
    parts_of,
    predicting_part,
    read_photos,
)
from mmlinattn.parts import type_name
from mmlinattn.utils.config import library_of, load_config
from mmlinattn.utils.log import quiet
from mmlinattn.weights import DownloadError, Fit, fit, load_safely, read_checkpoint
from mmlinattn.weights.class_names import learned_meta

from .library_options import set_loader_defaults
from .processes import use_cpus
from .screen import Brief
from .work_dir import raise_full_disk

# mmdet's panoptic maps have the class and this times the number of the object
OBJECTS = 1000
# names of arrays of Predictor, and those of the libraries
INSTANCES = dict(boxes='bboxes', scores='scores', labels='labels', masks='masks')


def run_config(args: argparse.Namespace) -> Config:
    """Return the config of a run from its arguments; from then on, checkpoints are read
    without running code in them."""
    if args.trust:
        os.environ['MMLINATTN_TRUST'] = '1'
    load_safely()
    ops.enable()
    cfg = args.read_config
    ops.check(library_of(cfg))
    set_loader_defaults(cfg)
    cfg.launcher = args.launcher
    name = osp.splitext(osp.basename(args.config))[0]
    cfg.work_dir = args.work_dir or cfg.get('work_dir') or f'work_dirs/{name}'
    return cfg


@contextmanager
def advice_on_downloads(cfg: Config) -> Iterator[None]:
    """Say which key of a config names a file that can't be downloaded, and what to set
    there."""
    try:
        yield
    except DownloadError as error:
        keys = keys_with(error.address, cfg.to_dict())
        # a part's own key, rather than a variable that it is made of
        key = next(iter(sorted(keys, key=lambda key: '.' not in key)), None)
        if key is None:
            raise
        put = f', and put it at {error.place}, or' if error.place else ', and'
        text = (
            f'{key}={error.address!r} cannot be downloaded ({error.reason}): fetch it '
            f'on another machine{put} give --cfg-options {key}=PATH'
        )
        scratch = re.sub(r'(\.\d+)?\.checkpoint$', '', key)
        if scratch.rpartition('.')[2] in ('init_cfg', 'load_from', 'pretrained'):
            text += f', or {scratch}=None to start without it'
        raise ConnectionError(text) from error


def keys_with(value: Any, node: Any, key: str = '') -> Iterator[str]:
    """Yield dotted keys of a config that have a value, without variables that only
    other keys are made of."""
    children: Iterable[tuple[Any, Any]] = ()
    if isinstance(node, dict):
        children = node.items()
    elif isinstance(node, (list, tuple)):
        children = enumerate(node)
    elif node == value and ('.' in key or key in ('load_from', 'pretrained')):
        yield key
    for name, child in children:
        yield from keys_with(value, child, f'{key}.{name}'.strip('.'))


def preflight(
    cfg: Config,
    args: argparse.Namespace,
    datasets: tuple[str, ...],
    check_weights: Callable[[nn.Module], Any],
) -> Any:
    """Build the model of a run in its first process, and compare it with its weights
    and the first sample of each of its datasets, 'train', 'val' or 'test'. Nothing is
    known of a runner of the user's own. Returns what ``check_weights`` returns."""
    if args.no_preflight or not is_first_process() or not has_known_runner(cfg):
        return None
    config = f'config={args.config!r}, '

    def doubt(text: str) -> None:
        warn(f'{config}{text}')

    with advice_on_downloads(cfg):
        with error_of(config):
            model = build_model(cfg)
            check_strides(cfg, model, doubt)
        comparison = check_weights(model)
    if 'train' in datasets:
        check_inherited(cfg, model, doubt)
    data_sets = {}
    with error_of(config):
        for name in datasets:
            if cfg.get(f'{name}_dataloader') is not None:
                data_sets[name] = check_data(cfg, name, model, doubt)
                for folder in folders_of(data_sets[name]):
                    doubt_labels(folder, doubt)
                if args.check_photos:
                    read_photos(name, data_sets[name], note)
        check_parts(cfg, model, data_sets, doubt)
    return comparison


def folders_of(dataset: Any) -> set[str]:
    """Return the folders of the annotations of a data set's parts."""
    paths = (getattr(part, 'ann_file', None) for part in parts_of(dataset))
    return {osp.dirname(path) for path in paths if path and isinstance(path, str)}


def doubt_labels(folder: str, doubt: Callable[[str], object]) -> None:
    """Say that labels have changed since new_config made a folder of them."""
    changed = changed_files(Path(folder))
    if changed:
        doubt(
            f'{len(changed)} label files are others than when new-config wrote '
            f'{folder}, such as {changed[0]}: to train on them, run it again with '
            '--overwrite'
        )


def load_checkpoint(
    name: str, path: str, model: nn.Module, trust: bool = False
) -> tuple[dict[str, Any], Fit]:
    """Load what of a checkpoint fits a model; return the checkpoint, and how it fits:
    see :func:`mmlinattn.weights.fit`."""
    checkpoint = read_checkpoint(path, name, trust)
    with error_of(f'{name}={path!r}: '), quiet():
        return checkpoint, fit(model, checkpoint, load=True)


def hand_on(cfg: Config, path: str, checkpoint: dict) -> None:
    """Let a run load a checkpoint without reading its file again. Several processes
    read it all at once, because they wait for each other."""
    if cfg.launcher == 'none':
        load_safely({path: checkpoint})


def load_model(args: argparse.Namespace) -> tuple[Config, nn.Module]:
    """Return the config that arguments name, and its model on the CPU, without
    weights."""
    cfg = load_config(args.config, args.cfg_options)
    ops.check(library_of(cfg))
    with error_of(f'config={args.config!r}, '):
        return cfg, build_model(cfg)


def load_whole(model: nn.Module, path: str, trust: bool = False) -> dict[str, Any]:
    """Load a checkpoint that has all of a model, and return names and colors of its
    classes."""
    checkpoint, fitted = load_checkpoint('checkpoint', path, model, trust)
    if not fitted.whole:
        raise ValueError(
            f'checkpoint={path!r} is not from this {type(model).__name__}: '
            f'{fitted.describe()}. Give one that was trained with this config'
        )
    return learned_meta(checkpoint)


def check_loop(cfg: Config, args: argparse.Namespace, name: str) -> None:
    """Raise a KeyError for a config without the parts of a loop, 'train' or 'test', as
    those of self-supervised models have none of a test. MMEngine checks a part of
    them."""
    parts = [f'{name}_{part}' for part in ('dataloader', 'cfg')]
    missing = [part for part in parts if cfg.get(part) is None]
    has_model = isinstance(cfg.get('model'), dict)
    if missing == parts and has_model and has_known_runner(cfg):
        raise KeyError(
            f'config={args.config!r} has no {" and no ".join(parts)}: there is nothing '
            f'to {name}. Give a config that has them'
        )


def has_known_runner(cfg: Config) -> bool:
    """Return whether the runner of a config is one of MMEngine's."""
    return cfg.get('runner_type', 'Runner') in ('Runner', 'FlexibleRunner', Runner)


def make_runner(cfg: Config) -> Runner:
    """Return the runner of a config, with little on the screen before it runs."""
    use_cpus(cfg)
    # MMEngine's log writes to what is sys.stdout while a runner is made
    with redirect_stdout(Brief(sys.stdout)):
        build = RUNNERS.build if 'runner_type' in cfg else Runner.from_cfg
        runner = build(cfg)
    raise_full_disk(getattr(runner, 'logger', logging.root))
    return runner


def begin_run(cfg: Config) -> None:
    """Make the folder of a run."""
    try:
        os.makedirs(cfg.work_dir, exist_ok=True)
        tempfile.TemporaryFile(dir=cfg.work_dir).close()
    except OSError as error:
        raise OSError(
            f'work_dir={cfg.work_dir!r} can not be written: {error}'
        ) from error


def loader_in_process(loader: ConfigDict, **options: Any) -> DataLoader:
    """Return a data loader that reads in this process, with other options."""
    loader = copy.deepcopy(loader)
    loader.update(num_workers=0, persistent_workers=False, **options)
    loader.pop('prefetch_factor', None)
    return Runner.build_dataloader(loader, seed=0)


def place(model: nn.Module, device: str) -> nn.Module:
    """Move a model to a device, where a step of one process can train it."""
    return revert_sync_batchnorm(model).to(device)


def drop_amp(cfg: Config, device: str) -> bool:
    """Replace mixed precision by float32 on a CPU, where oneDNN's convolutions in
    bfloat16 have wrong gradients; return whether there was any."""
    wrapper = cfg.get('optim_wrapper')
    is_amp = isinstance(wrapper, dict) and type_name(wrapper) == 'AmpOptimWrapper'
    if not is_amp or torch.device(device).type != 'cpu':
        return False
    wrapper['type'] = 'OptimWrapper'
    for option in ('dtype', 'loss_scale', 'use_fsdp'):
        wrapper.pop(option, None)
    return True


def test_data(cfg: Any) -> Any:
    """Return the config of a config's test data, without wrappers around it, the first
    of several; {} for none."""
    dataset = (cfg.get('test_dataloader') or {}).get('dataset', {})
    while 'pipeline' not in dataset and {'dataset', 'datasets'} & dataset.keys():
        dataset = dataset.get('dataset') or dataset['datasets'][0]
    return dataset


def test_dataset(cfg: Any) -> Any:
    """:func:`test_data` that has a pipeline."""
    dataset = test_data(cfg)
    if not dataset.get('pipeline'):
        raise ValueError('its test_dataloader has no pipeline that reads images')
    return dataset


def dataset_meta(dataset: Any, scope: str, known: dict[str, Any]) -> dict[str, Any]:
    """Return names and colors of classes: those of a checkpoint, or of a data set."""
    if known.get('classes'):
        return known
    kind = dataset['type']
    if isinstance(kind, str):
        with DATASETS.switch_scope_and_registry(scope) as registry:
            kind = registry.get(kind)
    return {**getattr(kind, 'METAINFO', {}), **(dataset.get('metainfo') or {})}


def preprocessor_options(cfg: Config) -> dict[str, Any]:
    """Return the config of the data preprocessor, which is the model's or beside it."""
    preprocessor = cfg.model.get('data_preprocessor') or cfg.get('data_preprocessor')
    # of several branches of data, one has the options of all
    return (preprocessor or {}).get('data_preprocessor') or preprocessor or {}


def export_options(cfg: Config) -> list[str]:
    """Return options of export.py for the model of a config: all of it, or its backbone
    where no file can hold the steps before and after."""
    try:
        # a runner may have wrapped or compiled its own
        model = predicting_model(build_model(cfg))
        pipeline = test_dataset(cfg).pipeline
        deployment.WholeModel(model, pipeline, preprocessor_options(cfg))
    except ValueError:  # what a file can't hold
        return ['--backbone-only', '--verify']
    return ['--whole', '--verify']


def predicting_model(model: nn.Module) -> nn.Module:
    """Return what a file can hold of a model: see
    :func:`mmlinattn.engine.preflight.predicting_part`.

    Raises:
        ValueError: For a tracker, whose predictions depend on earlier images.
    """
    if hasattr(model, 'tracker'):
        raise ValueError(
            f'{type(model).__name__} can not be exported, because its tracker keeps '
            'objects of earlier images: export the backbone of its detector, with '
            '--backbone-only'
        )
    return predicting_part(model)


def what_else(model: Any, library: str) -> str:
    """Return what a model predicts that is not drawn on photos, and what draws it; ''
    for boxes, label maps and classes."""
    if hasattr(model, 'tracker'):
        return "videos, not photos: take mmdet's demo/mot_demo.py"
    if library == 'mmpose':
        return "keypoints, which are not drawn here: take mmpose's MMPoseInferencer"
    return ''


def predictions_of(sample: Any) -> dict[str, np.ndarray]:
    """Return the predictions in a library's data sample, in the form of
    ``Predictor``."""
    if 'pred_instances' in sample:
        instances = sample.pred_instances
        return {
            # MMRotate's boxes have a tensor
            name: np.asarray(getattr(instances[key], 'tensor', instances[key]))
            for name, key in INSTANCES.items()
            if key in instances
        }
    if 'pred_panoptic_seg' in sample:
        segments = np.asarray(sample.pred_panoptic_seg.sem_seg)[0]
        return dict(label_map=segments.astype(np.int64) % OBJECTS)
    if 'pred_sem_seg' in sample:
        # one output for two classes gives floats
        return dict(label_map=np.asarray(sample.pred_sem_seg.data[0]).astype(np.int64))
    return dict(scores=np.asarray(sample.pred_score))
