"""Code that training and testing share."""

import argparse
import os
import os.path as osp
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from mmlinattn import ops

from .cli import Parser, add_cfg_options, error_of, errors_in_one_line, one_line

with errors_in_one_line(ImportError):  # our models can't be imported without an mmcv
    ops.check()

# isort: split
import numpy as np
from mmengine.config import Config
from mmengine.registry import DATASETS, RUNNERS
from mmengine.runner import Runner
from torch import nn

from mmlinattn.engine import build_model, check_data
from mmlinattn.utils.config import load_config
from mmlinattn.weights import fit, load_safely, read_checkpoint

from .screen import Brief

# of Predictor, and of the libraries
INSTANCES = dict(boxes='bboxes', scores='scores', labels='labels', masks='masks')


def run_parser(description: str) -> Parser:
    """Arguments that training and testing have in common."""
    parser = Parser(description=description)
    add = parser.add_argument
    add('config', help='path of the config')
    text = 'folder for logs, checkpoints and results'
    add('--work-dir', help=f'{text}; default: ./work_dirs/<name of the config>')
    add_cfg_options(parser, 'train_dataloader.batch_size=4')
    text = (
        'accept a checkpoint that does not fit the model: report the differences, and '
        'load the rest'
    )
    add('--allow-mismatch', action='store_true', help=text)
    text = (
        'unpickle everything in checkpoints, whatever its classes; this can run any '
        'code in them'
    )
    add('--trust', action='store_true', help=text)
    text = (
        'begin at once, without building the model, reading the first '
        'samples and comparing checkpoints with the model beforehand'
    )
    add('--no-preflight', action='store_true', help=text)
    kinds = ['none', 'pytorch', 'slurm', 'mpi']
    text = 'launcher of the processes; default: none, a single one'
    add('--launcher', choices=kinds, default='none', help=text)
    # torch's launcher passes it; MMEngine reads the environment instead
    parser.add_argument(
        '--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS
    )
    return parser


def is_first_process() -> bool:
    """True if this process is the only one of a run or its first, by its launcher."""
    ranks = map(os.environ.get, ('RANK', 'OMPI_COMM_WORLD_RANK', 'SLURM_PROCID'))
    return next(filter(None, ranks), '0') == '0'


def note(text: str) -> None:
    """Prints a line on stderr, in the first process of a run only."""
    if is_first_process():
        print(f'{osp.basename(sys.argv[0])}: {one_line(text)}', file=sys.stderr)


def warn(text: str) -> None:
    """Prints a warning by :func:`note`."""
    note(f'warning: {text}')


def run_config(args: argparse.Namespace) -> Config:
    """Reads the config of a run from arguments of :func:`run_parser`; from then on,
    checkpoints are read without running code in them."""
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    if args.trust:
        os.environ['MMLINATTN_TRUST'] = '1'
    load_safely()
    cfg = load_config(args.config, args.cfg_options, warn)
    ops.check(str(cfg.get('default_scope')))
    cfg.launcher = args.launcher
    name = osp.splitext(osp.basename(args.config))[0]
    cfg.work_dir = args.work_dir or cfg.get('work_dir') or f'work_dirs/{name}'
    return cfg


def preflight(
    cfg: Config,
    args: argparse.Namespace,
    datasets: tuple[str, ...],
    check_weights: Callable[[nn.Module], None],
) -> None:
    """Builds the model of a run in its first process, and compares it with its weights
    and the first sample of each of its datasets, 'train', 'val' or 'test'. Nothing is
    known of a runner of the user's own."""
    ours = cfg.get('runner_type', 'Runner') in ('Runner', 'FlexibleRunner', Runner)
    if args.no_preflight or not is_first_process() or not ours:
        return
    config = f'config={args.config!r}, '
    with error_of(config):
        model = build_model(cfg)
    check_weights(model)
    for name in datasets:
        if cfg.get(f'{name}_dataloader') is not None:
            with error_of(config):
                check_data(cfg, name, model, lambda text: warn(f'{config}{text}'))


def compare(
    name: str, path: str, model: nn.Module, trust: bool = False
) -> tuple[dict, Any]:
    """A checkpoint, and the result of :func:`mmlinattn.weights.fit` for a model."""
    checkpoint = read_checkpoint(path, name, trust)
    with error_of(f'{name}={path!r}: '):
        return checkpoint, fit(model, checkpoint)


def load_model(args: argparse.Namespace) -> tuple[Config, nn.Module]:
    """The config that arguments name, and its model on the CPU, without weights."""
    cfg = load_config(args.config, args.cfg_options)
    ops.check(str(cfg.get('default_scope')))
    with error_of(f'config={args.config!r}, '):
        return cfg, build_model(cfg)


def load_whole(model: nn.Module, path: str, trust: bool = False) -> dict[str, Any]:
    """Loads a checkpoint that has all of a model, and returns names and colors of its
    classes."""
    checkpoint, found = compare('checkpoint', path, model, trust)
    if not found.whole:
        raise ValueError(
            f'checkpoint={path!r} is not from this {type(model).__name__}: '
            f'{found.describe()}. Give one that was trained with this config'
        )
    model.load_state_dict(found.state_dict, strict=False)
    return learned_meta(checkpoint)


def make_runner(cfg: Config) -> Runner:
    """The runner of a config, with little on the screen before it runs."""
    # MMEngine's log writes to what is sys.stdout while a runner is made
    with redirect_stdout(Brief(sys.stdout)):
        return RUNNERS.build(cfg) if 'runner_type' in cfg else Runner.from_cfg(cfg)


def begin_run(cfg: Config) -> None:
    """Makes the folder of a run."""
    try:
        os.makedirs(cfg.work_dir, exist_ok=True)
        tempfile.TemporaryFile(dir=cfg.work_dir).close()
    except OSError as error:
        raise OSError(
            f'work_dir={cfg.work_dir!r} can not be written: {error}'
        ) from error


def test_data(cfg: Any) -> Any:
    """The config of a config's test data, without wrappers around it; {} for none."""
    dataset = cfg.get('test_dataloader', {}).get('dataset', {})
    while 'pipeline' not in dataset and 'dataset' in dataset:
        dataset = dataset['dataset']
    return dataset


def test_dataset(cfg: Any) -> Any:
    """:func:`test_data` that has a pipeline."""
    dataset = test_data(cfg)
    if not dataset.get('pipeline'):
        raise ValueError('its test_dataloader has no pipeline that reads images')
    return dataset


def dataset_meta(dataset: Any, scope: str, known: dict[str, Any]) -> dict[str, Any]:
    """Names and colors of classes: those of a checkpoint, or of a data set."""
    if known.get('classes'):
        return known
    with DATASETS.switch_scope_and_registry(scope) as registry:
        kind = registry.get(dataset['type'])
    return {**getattr(kind, 'METAINFO', {}), **(dataset.get('metainfo') or {})}


def learned_meta(checkpoint: dict) -> dict[str, Any]:
    """What a checkpoint says of the data that it was trained with: names and colors of
    classes."""
    return (checkpoint.get('meta') or {}).get('dataset_meta') or {}


def predictions_of(sample: Any) -> dict[str, np.ndarray]:
    """The predictions in a library's data sample, in the form of ``Predictor``."""
    if 'pred_instances' in sample:
        found = sample.pred_instances
        return {key: np.asarray(found[x]) for key, x in INSTANCES.items() if x in found}
    if 'pred_sem_seg' in sample:
        return dict(label_map=np.asarray(sample.pred_sem_seg.data[0]))
    return dict(scores=np.asarray(sample.pred_score))
