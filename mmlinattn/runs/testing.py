"""Tests a model of mmdet, mmseg or mmpretrain."""

import argparse
from functools import partial
from itertools import zip_longest
from pathlib import Path

from mmlinattn_tools import cli
from mmlinattn_tools.run_arguments import note, parse_run, run_parser, warn

# what to type in place of options of the libraries' own scripts
REPLACED = {
    '--show': '--show-dir DIR saves the pictures',
    '--wait-time': '--show-dir DIR saves the pictures',
    '--interval': '--show-dir DIR saves the pictures of all images',
    '--out-item': '--out FILE.pkl saves the predictions; the metrics are in the work '
    "directory's JSON file",
    '--amp': '--cfg-options test_cfg.fp16=True',
    '--format-only': '--cfg-options test_evaluator.format_only=True',
}


def parse_args() -> argparse.Namespace:
    parser = run_parser(
        'Test a model from a config of mmdet, mmseg, mmpretrain or mmlinattn: '
        'print its metrics, and write them to the work directory.',
        REPLACED,
    )
    parser.add_argument('checkpoint', help='path of the weights to test')
    parser.add_argument(
        '--out',
        metavar='PATH',
        help='save predictions: mmdet and mmpretrain in a file, *.pkl, mmseg in '
        'a folder of label maps',
    )
    parser.add_argument(
        '--show-dir',
        type=cli.output_folder,
        metavar='DIR',
        help='save pictures of predictions in this folder (mmseg: in its '
        'vis_data/vis_image)',
    )
    parser.add_argument(
        '--tta',
        action='store_true',
        help='test-time augmentation, by tta_model and tta_pipeline of the config; '
        'default for mmdet and mmpretrain: flips',
    )
    cli.add_overwrite(parser)
    return parse_run(parser)


# before the libraries are imported, which takes seconds
ARGS = parse_args() if __name__ == '__main__' else None

# isort: split
from mmlinattn_tools import runs  # a line tells of a wrong mmcv

# isort: split
from mmengine.config import Config
from torch import nn

from mmlinattn.utils import check_file
from mmlinattn_tools.library_options import use_test_time_augmentation
from mmlinattn_tools.work_dir import FullDiskError, full_disk_in_a_line


def draw_predictions(cfg: Config, args: argparse.Namespace) -> None:
    """Turns on drawing; each library has its own hook for it."""
    hook = cfg.default_hooks.get('visualization')
    if hook is None:
        raise KeyError(
            '--show-dir needs default_hooks.visualization, which '
            f'config={args.config!r} does not have'
        )
    folder = str(args.show_dir.absolute())
    kind = getattr(hook.type, '__name__', hook.type).rpartition('.')[2]
    if kind == 'DetVisualizationHook':
        hook.update(draw=True, test_out_dir=folder)
    elif kind == 'SegVisualizationHook':
        hook.update(draw=True, interval=1)
        cfg.visualizer.save_dir = folder
    else:
        hook.update(enable=True, interval=1, out_dir=folder)


def save_predictions(cfg: Config, path: str) -> None:
    """Adds a metric that saves predictions."""
    metrics = cfg.test_evaluator
    if not isinstance(metrics, (list, tuple)):
        metrics = [metrics]
    if cfg.get('default_scope') == 'mmseg':
        metrics[0].output_dir = path
        return
    if not path.endswith(('.pkl', '.pickle')):
        raise ValueError(f'--out must be a .pkl or .pickle file, got {path!r}')
    kind = 'mmdet.DumpDet' if cfg.get('default_scope') == 'mmdet' else 'Dump'
    cfg.test_evaluator = [*metrics, dict(type=f'{kind}Results', out_file_path=path)]


def check_weights(cfg: Config, args: argparse.Namespace, model: nn.Module) -> None:
    """Raises an error for a checkpoint that doesn't cover the model, or has its classes
    in another order, and hands on what it read."""
    path, allow_mismatch = args.checkpoint, args.allow_mismatch
    checkpoint, fitted = runs.compare('checkpoint', path, model)
    if not fitted.whole:
        text = f'checkpoint={path!r} does not fit this model: {fitted.describe()}'
        if not allow_mismatch:
            raise ValueError(f'{text}; to test it anyway, give --allow-mismatch')
        note(text)
    learned = [*runs.learned_meta(checkpoint).get('classes', ())]
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
    """Names of the classes of a config's test data, [] if only a run finds them."""
    data, scope = runs.test_data(cfg), cfg.get('default_scope') or 'mmengine'
    if 'type' not in data:
        return []
    classes = data.get('classes') or runs.dataset_meta(data, scope, {}).get('classes')
    return [*classes] if isinstance(classes, (list, tuple)) else []


def prepare(args: argparse.Namespace) -> Config:
    """Prepares the config of the run, and checks its inputs."""
    cfg = runs.run_config(args)
    check_file('checkpoint', args.checkpoint)
    cfg.load_from = args.checkpoint
    cli.protect(args, *map(Path, filter(None, (args.show_dir, args.out))))
    if args.out:
        save_predictions(cfg, args.out)
    if args.show_dir:
        draw_predictions(cfg, args)
    runs.preflight(cfg, args, ('test',), partial(check_weights, cfg, args))
    if args.tta:
        use_test_time_augmentation(cfg)
    runs.begin_run(cfg)
    return cfg


def main() -> None:
    """The command."""
    args = ARGS or parse_args()
    with cli.errors_in_one_line(*cli.INPUT_ERRORS):
        cfg = prepare(args)
    errors = cli.errors_in_one_line(ConnectionError, FullDiskError)
    full = full_disk_in_a_line(cfg.work_dir, 'test again')
    with errors, full, runs.advice_on_downloads(cfg):
        runs.make_runner(cfg).test()


if __name__ == '__main__':
    main()
