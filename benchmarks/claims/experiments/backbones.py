"""Backbones side by side in one RetinaNet, from scratch."""

import statistics
from functools import partial

from side_by_side.timing import measure as take_turns

from ..claim import Claim, Part, scores_doubt, spread, values_of
from ..detection import BN, RECIPE, average_precision, trained, training_step
from ..plots import Panel, plot_lines
from . import detectors

OURS = 'SOFT++-T'
OUT = dict(out_indices=(1, 2, 3))


def swin(**options):
    return dict(type='mmlinattn.SwinTransformer', arch='tiny', **OUT, **options)


# Configs with the channels of the maps.
BACKBONES = {
    'PVTv2-B1': (
        dict(
            type='mmdet.PyramidVisionTransformerV2',
            embed_dims=64,
            num_layers=[2, 2, 2, 2],
            **OUT,
        ),
        [128, 320, 512],
    ),
    'Swin-T': (swin(), [192, 384, 768]),
    'Swin-T-ELFATT': (swin(attention='elfatt'), [192, 384, 768]),
    'Swin-T-FeatScale': (swin(feat_scale=True), [192, 384, 768]),
    'ResNet-18': (
        dict(type='mmdet.ResNet', depth=18, norm_cfg=BN, norm_eval=False, **OUT),
        [128, 256, 512],
    ),
}
# What the papers put before what.
ORDER = (
    (OURS, 'ResNet-18'),
    (OURS, 'PVTv2-B1'),
    ('Swin-T-ELFATT', 'Swin-T'),
    ('Swin-T-FeatScale', 'Swin-T'),
)


NAMES = (OURS, *BACKBONES)
PACE = 'seconds of a step'


def units(settings):
    return [*NAMES, PACE]


def measure(unit, context):
    if unit == PACE:
        return measure_pace(context)
    runner, aps = trained(*backbone_of(unit, context.settings), context)
    side = context.settings['recipe']['side']
    return dict(ap=average_precision(runner, side), aps=aps)


def backbone_of(name, settings):
    """Config and channels of a backbone."""
    if name == OURS:
        return detectors.soft(settings, True)
    if settings['arch'] == 'tiny':
        return BACKBONES[name]
    arch = dict(embed_dims=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 1, 1])
    cfg = dict(type='mmlinattn.SwinTransformer', arch=arch, **OUT)
    return cfg, [16, 32, 64]  # a smoke test


def measure_pace(context):
    """Training steps of all in turns, so that they see the same machine."""
    runs = {}
    for name in NAMES:
        step = training_step(*backbone_of(name, context.settings), context)
        step()
        runs[name] = (step, lambda: None)
    times = take_turns(
        runs,
        dict.fromkeys(runs, context.settings['rounds']),
        partial(context.track, description='rounds'),
    )
    return dict(seconds={x: statistics.median(times[x].values()) for x in NAMES})


def better(of_seed, name, other):
    return of_seed[name]['ap'] - of_seed[other]['ap']


DETECTS = scores_doubt('ap', 0.02)


def tables(runs):
    rows = []
    for name in NAMES:
        milliseconds = [1e3 * x for x in values_of(runs, PACE, 'seconds', name)]
        cells = [spread(values_of(runs, name, 'ap')), spread(milliseconds, 0)]
        rows.append([name, *cells])
    titles = ['backbone', 'AP after the last step', 'median of a step, ms']
    return [('On held-back images', titles, rows)]


def plot(runs, path):
    steps, seconds = {}, {}
    for name in NAMES:
        numbers = values_of(runs, name, 'aps')
        xs = sorted(map(int, numbers[0]))
        ys = [[x[str(step)] for step in xs] for x in numbers]
        pace = statistics.fmean(values_of(runs, PACE, 'seconds', name))
        steps[name] = (xs, ys)
        seconds[name] = ([x * pace for x in xs], ys)
    plot_lines(
        [
            Panel('AP against steps', 'steps', 'box AP', steps),
            Panel('AP against time', 'seconds of training', 'box AP', seconds),
        ],
        path,
    )


CLAIM = Claim(
    name='backbones',
    title='Backbones side by side in one detector',
    claim='In RetinaNet, SOFT++-T is better than ResNet-18 and PVTv2-B1. Swin-T gets '
    'better with ELFATT, and with FeatScale.',
    paper='SOFT++, Table 4: RetinaNet 1x, 41.9 AP with SOFT++-Tiny. ELFATT, Table VI: '
    'Mask R-CNN 1x, Swin-T 42.7, with ELFATT 46.1. *Anti-Oversmoothing*, Table 1: '
    'Swin-S 83.0 on ImageNet, with FeatScale 83.5.',
    setting="All six in the project's RetinaNet, at their full width, from scratch: "
    '400 steps of 4 images of 96 pixels in the same order; FPN and heads with 64 '
    'channels and two convolutions; AdamW, lr 6e-4, weight decay 0.05, cosine, for '
    'all. AP is taken four times on the way. Seconds are medians of 15 steps, which '
    'all take in turns, times steps.',
    limits='400 steps from scratch may favor convolutions, which pretrained weights '
    'would not. ResNet-18 is usually trained with SGD. FeatScale has little time to '
    'learn.',
    settings=dict(
        detectors.SETTINGS,
        recipe=dict(RECIPE, evaluations=4),
        rounds=15,
        images=dict(detection=detectors.IMAGES),
    ),
    smoke=dict(
        arch=detectors.TINY,
        recipe=detectors.SMOKE_RECIPE,
        rounds=1,
        images=dict(detection=(4, 2)),
    ),
    minutes=60,
    units=units,
    measure=measure,
    parts=tuple(
        Part(
            f'AP with {name} less that with {other}',
            lambda x, name=name, other=other: better(x, name, other),
            doubt=DETECTS,
        )
        for name, other in ORDER
    ),
    tables=tables,
    plot=plot,
    data=('detection',),
)
