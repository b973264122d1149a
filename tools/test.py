"""Tests a model of mmdet, mmseg or mmpretrain."""

from mmengine.config import ConfigDict

from mmlinattn.utils import check_file
from mmlinattn_tools import runs
from mmlinattn_tools.cli import (
    INPUT_ERRORS,
    add_overwrite,
    errors_in_one_line,
    output_folder,
    protect,
)


def parse_args():
    parser = runs.run_parser(
        'Test a model from a config of mmdet, mmseg, mmpretrain or mmlinattn: '
        'print its metrics, and write them to the work directory.'
    )
    parser.add_argument('checkpoint', help='path of the weights to test')
    parser.add_argument(
        '--show-dir',
        type=output_folder,
        metavar='DIR',
        help='save pictures of predictions in this folder (mmseg: in its '
        'vis_data/vis_image)',
    )
    parser.add_argument(
        '--tta',
        action='store_true',
        help='test-time augmentation as tta_model and tta_pipeline of the config say',
    )
    add_overwrite(parser)
    return parser.parse_args()


def draw_predictions(cfg, args):
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


def augment_test(cfg, args):
    """Wraps the model for test-time augmentation."""
    missing = [key for key in ('tta_model', 'tta_pipeline') if not cfg.get(key)]
    if missing:
        raise KeyError(
            f'--tta needs tta_model and tta_pipeline; config={args.config!r} '
            f'lacks {" and ".join(missing)}'
        )
    cfg.model = ConfigDict(**cfg.tta_model, module=cfg.model)
    cfg.test_dataloader.dataset.pipeline = cfg.tta_pipeline


def check_weights(path, model, allow_mismatch):
    """Raises an error for a checkpoint that doesn't cover the model."""
    # a model for augmented tests wraps the one of the checkpoint
    _, found = runs.compare('checkpoint', path, getattr(model, 'module', model))
    if not found.whole:
        text = f'checkpoint={path!r} is not one of this model: {found.describe()}'
        if not allow_mismatch:
            raise ValueError(f'{text}; to test it all the same, give --allow-mismatch')
        runs.note(text)


def prepare(args):
    """The config of the run, and a check that its inputs are there."""
    cfg = runs.run_config(args)
    check_file('checkpoint', args.checkpoint)
    cfg.load_from = args.checkpoint
    if args.show_dir:
        protect(args, args.show_dir)
        draw_predictions(cfg, args)
    if args.tta:
        augment_test(cfg, args)
    model = runs.preflight(cfg, args, 'test')
    if model is not None:
        check_weights(args.checkpoint, model, args.allow_mismatch)
    runs.begin_run(cfg)
    return cfg


def main():
    args = parse_args()
    with errors_in_one_line(*INPUT_ERRORS):
        cfg = prepare(args)
    runs.make_runner(cfg).test()


if __name__ == '__main__':
    main()
