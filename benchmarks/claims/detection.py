"""Trains small RetinaNets with MMEngine's runner from the project's configs."""

import contextlib
import copy
import io
import time
import warnings

import torch
from mmengine.hooks import Hook
from side_by_side.timing import synchronize

from mmlinattn.utils.files import whole_file

from .data import ROOT, annotation_file, categories, key_of

CONFIG = 'configs/soft/retinanet_softpp-t_fpn_1x_coco.py'
# AdamW as in the papers' detectors. The learning rate is that of the quickstart, which
# also trains from scratch on shapes; the papers' 1e-4 is for pretrained backbones.
RECIPE = dict(
    side=96, batch=4, steps=400, lr=6e-4, weight_decay=0.05, warmup=0.1, channels=64
)
BN = dict(type='BN', requires_grad=True)


class Watch(Hook):
    """Keeps AP by step, and moves a progress bar."""

    priority = 'VERY_LOW'

    def __init__(self, bar):
        self.bar = bar
        self.aps = {}

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        next(self.bar, None)

    def after_val_epoch(self, runner, metrics=None):
        self.aps[runner.iter] = ap_of(metrics)


def ap_of(metrics):
    """Box AP; there is none where nothing was found."""
    return max(float((metrics or {}).get('coco/bbox_mAP', 0.0)), 0.0)


def make_config(backbone, channels, context, work_dir):
    """The project's RetinaNet on the data, with another backbone.

    Args:
        backbone (dict): Config; it returns maps of strides 8, 16 and 32.
        channels (list[int]): Of the three maps.
        context (Context): ``settings['recipe']`` is the recipe.
        work_dir (Path): For the runner's files.

    Returns:
        Config: For a runner.
    """
    from mmlinattn.utils import load_config

    recipe = context.settings['recipe']
    root = context.data.prepare('detection')
    names = tuple(categories(root).values())
    cfg = load_config(str(ROOT / CONFIG))
    cfg.work_dir = str(work_dir)
    cfg.experiment_name = f'{work_dir.name}_{time.time_ns()}'
    cfg.randomness = dict(seed=context.seed)
    cfg.log_level = 'CRITICAL'  # that nothing is found at first is no error
    cfg.model.backbone = dict(backbone)
    cfg.model.neck.in_channels = channels
    cfg.model.neck.out_channels = recipe['channels']
    # objects are a few dozen pixels large: anchors from 16 pixels on, in place of 32
    cfg.model.bbox_head.update(
        num_classes=len(names),
        in_channels=recipe['channels'],
        feat_channels=recipe['channels'],
        stacked_convs=2,
    )
    cfg.model.bbox_head.anchor_generator.octave_base_scale = 2
    loader = dict(num_workers=0, persistent_workers=False)
    scale = (recipe['side'], recipe['side'])
    cfg.train_dataloader.update(
        loader,
        batch_size=recipe['batch'],
        sampler=dict(type='InfiniteSampler', shuffle=True),
        batch_sampler=None,
    )
    set_data(cfg.train_dataloader.dataset, root, 'train', names)
    resize_of(cfg.train_dataloader.dataset).scale = scale
    for name in ('val_dataloader', 'test_dataloader'):
        cfg[name].update(loader)
        set_data(cfg[name].dataset, root, 'val', names)
        resize_of(cfg[name].dataset).scale = scale
    for name in ('val_evaluator', 'test_evaluator'):
        cfg[name].ann_file = str(annotation_file(root, 'val'))
    steps = recipe['steps']
    cfg.train_cfg = dict(
        type='IterBasedTrainLoop',
        max_iters=steps,
        val_interval=max(steps // recipe.get('evaluations', 1), 1),
    )
    first = max(round(recipe['warmup'] * steps), 1)
    cfg.param_scheduler = [
        dict(type='LinearLR', start_factor=1e-3, by_epoch=False, begin=0, end=first),
        dict(
            type='CosineAnnealingLR',
            T_max=max(steps - first, 1),
            by_epoch=False,
            begin=first,
            end=steps,
        ),
    ]
    cfg.optim_wrapper.optimizer.update(
        lr=recipe['lr'], weight_decay=recipe['weight_decay']
    )
    cfg.optim_wrapper.clip_grad = dict(max_norm=1.0)
    cfg.default_hooks.checkpoint = None  # its weights are kept here, once
    cfg.default_hooks.logger = None  # it works in trainings only
    cfg.default_hooks.pop('pretrained')  # all start from scratch
    cfg.log_processor.by_epoch = False
    return cfg


def set_data(dataset, root, split, names):
    dataset.update(
        data_root=str(root),
        ann_file=f'annotations/instances_{split}2017.json',
        data_prefix=dict(img=f'{split}2017/'),
        metainfo=dict(classes=names),
    )


def resize_of(dataset):
    """The step of a pipeline that sets the images' size."""
    return next(step for step in dataset.pipeline if step.type == 'Resize')


@contextlib.contextmanager
def quiet():
    """Context without what pycocotools prints and mmengine warns of."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        yield


@quiet()
def trained(backbone, channels, context):
    """A runner with a trained detector, or with the same from the disk.

    Args:
        backbone (dict): Config.
        channels (list[int]): Channels of its maps.
        context (Context): ``settings['recipe']`` is the recipe.

    Returns:
        tuple[Runner, dict[int, float]]: And AP by step.
    """
    import_mmdet()
    from mmengine.runner import Runner

    key = key_of(
        [
            backbone,
            context.settings['recipe'],
            context.seed,
            context.device.type,
            torch.__version__,
            torch.get_num_threads(),
            context.data.describe('detection'),
        ]
    )
    path = context.work_dir / 'weights' / f'{key}.pth'
    cfg = make_config(backbone, channels, context, context.work_dir / 'runs' / key)
    runner = Runner.from_cfg(cfg)
    if path.is_file():
        kept = torch.load(path, map_location='cpu', weights_only=True)
        runner.model.load_state_dict(kept['model'])
        return runner, kept['aps']
    steps = range(context.settings['recipe']['steps'])
    watch = Watch(iter(context.track(steps, description='steps')))
    runner.register_hook(watch)
    runner.train()
    list(watch.bar)
    with whole_file(path) as draft:
        torch.save(dict(model=runner.model.state_dict(), aps=watch.aps), draft)
    return runner, watch.aps


@quiet()
def training_step(backbone, channels, context):
    """A training step on one batch, as often as it is called; see :func:`trained`.

    Returns:
        callable: Takes nothing, and waits for the device.
    """
    import_mmdet()
    from mmengine.runner import Runner

    cfg = make_config(backbone, channels, context, context.work_dir / 'runs' / 'steps')
    runner = Runner.from_cfg(cfg)
    optim_wrapper = runner.build_optim_wrapper(cfg.optim_wrapper)
    batch = next(iter(runner.build_dataloader(cfg.train_dataloader)))
    runner.model.train()

    def step():
        runner.model.train_step(copy.deepcopy(batch), optim_wrapper)
        synchronize(context.device)

    return step


def import_mmdet():
    """Imports mmdet, with a line on what to do where it is missing.

    Raises:
        ValueError: If it can't be imported.
    """
    try:
        from mmdet.utils import register_all_modules
    except ImportError as error:
        raise ValueError(
            f'the detectors need mmdet, which can not be imported here ({error}): use '
            'the Python of the environment that `make env` makes'
        ) from error
    register_all_modules(init_default_scope=False)


@quiet()
def average_precision(runner, side):
    """Box AP on held-back images at a size.

    Args:
        runner (Runner): With a trained detector.
        side (int): Of the images' longer side, pixels.
    """
    from mmengine.runner import TestLoop

    loader = copy.deepcopy(runner.cfg.test_dataloader)
    resize_of(loader.dataset).scale = (side, side)
    loop = TestLoop(runner, loader, copy.deepcopy(runner.cfg.test_evaluator))
    return ap_of(loop.run())
