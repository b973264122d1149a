"""Backbones side by side in one RetinaNet, from scratch."""

from ..claim import Claim, Part, scores_doubt, spread, values_of
from ..detection import BN, RECIPE, average_precision, trained
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


def units(settings):
    return [OURS, *BACKBONES]


def measure(unit, context):
    if unit == OURS:
        cfg, channels = detectors.soft(context.settings, True)
    elif context.settings['arch'] != 'tiny':  # a smoke test
        cfg = dict(
            type='mmlinattn.SwinTransformer',
            arch=dict(embed_dims=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 1, 1]),
            **OUT,
        )
        channels = [16, 32, 64]
    else:
        cfg, channels = BACKBONES[unit]
    runner, history = trained(cfg, channels, context)
    side = context.settings['recipe']['side']
    return dict(
        ap=average_precision(runner, side),
        aps={str(step): ap for step, ap in history['aps'].items()},
        seconds=history['seconds'],
    )


def better(of_seed, name, other):
    return of_seed[name]['ap'] - of_seed[other]['ap']


DETECTS = scores_doubt('ap', 0.02)


def tables(runs):
    rows = []
    for unit in next(iter(runs.values())):
        milliseconds = [1e3 * x for x in values_of(runs, unit, 'seconds')]
        cells = [spread(values_of(runs, unit, 'ap')), spread(milliseconds, 0)]
        rows.append([unit, *cells])
    titles = ['backbone', 'AP after the last step', 'median of a step, ms']
    return [('On held-back images', titles, rows)]


def plot(runs, path):
    steps, seconds = {}, {}
    for unit, numbers in next(iter(runs.values())).items():
        xs = sorted(map(int, numbers['aps']))
        ys = [[x['aps'][str(step)] for step in xs] for x in values_of(runs, unit)]
        pace = values_of(runs, unit, 'seconds')
        steps[unit] = (xs, ys)
        seconds[unit] = ([x * sum(pace) / len(pace) for x in xs], ys)
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
    'all. AP is taken four times on the way. Seconds are medians of a step times '
    'steps.',
    limits='400 steps from scratch may favor convolutions, which pretrained weights '
    'would not. ResNet-18 is usually trained with SGD. FeatScale has little time to '
    'learn.',
    settings=dict(
        detectors.SETTINGS,
        recipe=dict(RECIPE, evaluations=4),
        images=dict(detection=detectors.IMAGES),
    ),
    smoke=dict(
        arch=detectors.TINY,
        recipe=detectors.SMOKE_RECIPE,
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
