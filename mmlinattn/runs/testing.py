"""Tests a model of mmdet, mmseg or mmpretrain."""

import argparse
from collections.abc import Mapping
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Optional, Union

from mmengine.config import Config
from torch import nn

from mmlinattn.cli import parser as cli
from mmlinattn.cli.run_arguments import note, run_options, warn
from mmlinattn.parts import type_name
from mmlinattn.utils import check_file
from mmlinattn.utils.config import library_of
from mmlinattn.weights.class_names import learned_meta

from . import preparation as runs
from .library_options import use_test_time_augmentation
from .work_dir import FullDiskError, full_disk_in_a_line

ERRORS = (ConnectionError, FullDiskError)  # of a test that has begun


def test(
    config: Union[str, Path],
    checkpoint: Union[str, Path],
    work_dir: Union[str, Path, None] = None,
    cfg_options: Optional[Mapping[str, Any]] = None,
    *,
    out: Optional[str] = None,
    show_dir: Union[str, Path, None] = None,
    tta: bool = False,
    overwrite: bool = False,
    allow_mismatch: bool = False,
    trust: bool = False,
    preflight: bool = True,
    check_photos: bool = False,
    launcher: str = 'none',
) -> dict[str, float]:
    """Test a model, as the command ``mmlinattn test`` does; :func:`.training.train`
    says what changes in this process.

    Args:
        config (str | Path): A config of mmdet, mmseg, mmpretrain or mmlinattn.
        checkpoint (str | Path): Its weights.
        work_dir (str | Path, optional): The folder to write to. Default: that of the
            config, or ``work_dirs/NAME``.
        cfg_options (Mapping, optional): Entries of the config to override, by dotted
            key.
        out (str, optional): Where to save predictions: a file ``*.pkl``, and of mmseg a
            folder of label maps.
        show_dir (str | Path, optional): A folder for pictures of predictions.
        tta (bool): Test-time augmentation.
        overwrite (bool): Replace files that exist.
        allow_mismatch (bool): Accept a checkpoint that does not fit the model.
        trust (bool): Unpickle everything in checkpoints, which can run any code.
        preflight (bool): Build the model, and read the first samples, beforehand.
        check_photos (bool): Read every photo beforehand.
        launcher (str): 'none', 'pytorch', 'slurm' or 'mpi'.

    Returns:
        dict[str, float]: The metrics.

    Raises:
        FileNotFoundError: If the config, the checkpoint or a file of the data is
            missing.
        FileExistsError: If ``out`` or ``show_dir`` has files, without ``overwrite``.
        KeyError: If the config lacks an entry.
        ValueError: If the config, its data, and the checkpoint do not fit each other.
    """
    args = run_options(
        config,
        work_dir,
        cfg_options,
        checkpoint=str(checkpoint),
        out=out,
        show_dir=None if show_dir is None else Path(show_dir),
        tta=tta,
        overwrite=overwrite,
        allow_mismatch=allow_mismatch,
        trust=trust,
        no_preflight=not preflight,
        check_photos=check_photos,
        launcher=launcher,
    )
    return run(prepare(args))


def draw_predictions(cfg: Config, args: argparse.Namespace) -> None:
    """Turn on drawing; each library has its own hook for it."""
    hook = cfg.default_hooks.get('visualization')
    if hook is None:
        raise KeyError(
            '--show-dir needs default_hooks.visualization, which '
            f'config={args.config!r} does not have'
        )
    folder = str(args.show_dir.absolute())
    kind = type_name(hook)
    if kind == 'DetVisualizationHook':
        hook.update(draw=True, test_out_dir=folder)
    elif kind == 'SegVisualizationHook':
        hook.update(draw=True, interval=1)
        cfg.visualizer.save_dir = folder
    else:
        hook.update(enable=True, interval=1, out_dir=folder)


def save_predictions(cfg: Config, path: str) -> None:
    """Add a metric that saves predictions."""
    metrics = cfg.test_evaluator
    if not isinstance(metrics, (list, tuple)):
        metrics = [metrics]
    if library_of(cfg) == 'mmseg':
        metrics[0].output_dir = path
        return
    if not path.endswith(('.pkl', '.pickle')):
        raise ValueError(f'--out must be a .pkl or .pickle file, got {path!r}')
    kind = 'mmdet.DumpDet' if library_of(cfg) == 'mmdet' else 'Dump'
    cfg.test_evaluator = [*metrics, dict(type=f'{kind}Results', out_file_path=path)]


def check_weights(cfg: Config, args: argparse.Namespace, model: nn.Module) -> None:
    """Raise an error for a checkpoint that doesn't cover the model, or has its classes
    in another order, and hand on what it read."""
    path, allow_mismatch = args.checkpoint, args.allow_mismatch
    checkpoint, fitted = runs.load_checkpoint('checkpoint', path, model)
    if not fitted.whole:
        text = f'checkpoint={path!r} does not fit this model: {fitted.describe()}'
        if not allow_mismatch:
            raise ValueError(f'{text}; to test it anyway, give --allow-mismatch')
        note(text)
    learned = [*learned_meta(checkpoint).get('classes', ())]
    classes = test_classes(cfg)
    if learned and classes and learned != classes:
        pairs = [pair for pair in zip_longest(learned, classes) if pair[0] != pair[1]]
        text = (
            f'checkpoint={path!r} learned other classes than the test data have, such '
            'as {!r} in place of {!r}'.format(*pairs[0])
        )
        if sorted(learned) == sorted(classes) and not allow_mismatch:
            raise ValueError(f'{text}; to test it anyway, give --allow-mismatch')
        warn(text)
    runs.hand_on(cfg, path, checkpoint)


def test_classes(cfg: Config) -> list[str]:
    """Return names of the classes of a config's test data, [] if only a run finds
    them."""
    data, scope = runs.test_data(cfg), library_of(cfg)
    if 'type' not in data:
        return []
    classes = data.get('classes') or runs.dataset_meta(data, scope, {}).get('classes')
    return [*classes] if isinstance(classes, (list, tuple)) else []


def prepare(args: argparse.Namespace) -> Config:
    """Prepare the config of the run, and check its inputs."""
    cfg = runs.run_config(args)
    runs.check_loop(cfg, args, 'test')
    check_file('checkpoint', args.checkpoint)
    cfg.load_from = args.checkpoint
    cli.check_free(args, *map(Path, filter(None, (args.show_dir, args.out))))
    if args.out:
        save_predictions(cfg, args.out)
    if args.show_dir:
        draw_predictions(cfg, args)
    runs.preflight(cfg, args, ('test',), partial(check_weights, cfg, args))
    if args.tta:
        use_test_time_augmentation(cfg)
    runs.begin_run(cfg)
    return cfg


def run(cfg: Config) -> dict[str, float]:
    """Test by a config that :func:`prepare` has prepared; return the metrics."""
    full = full_disk_in_a_line(cfg.work_dir, 'test again')
    with full, runs.advice_on_downloads(cfg):
        return runs.make_runner(cfg).test()
