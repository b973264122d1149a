"""Unnormalized against normalized SOFT in one RetinaNet."""

from ..claim import Claim, Part, scores_doubt, spread, values_of
from ..detection import average_precision, trained
from ..plots import Panel, plot_bars
from . import detectors

MODELS = {'SOFT': False, 'SOFT++': True}


def units(settings):
    return list(MODELS)


def measure(unit, context):
    cfg, channels = detectors.soft(context.settings, MODELS[unit])
    runner, _ = trained(cfg, channels, context)
    return dict(ap=average_precision(runner, context.settings['recipe']['side']))


def tables(runs):
    rows = [[unit, spread(values_of(runs, unit, 'ap'))] for unit in MODELS]
    return [('Box AP on held-back images', ['backbone', 'AP'], rows)]


def plot(runs, path):
    curves = {unit: values_of(runs, unit, 'ap') for unit in MODELS}
    plot_bars([Panel('RetinaNet', 'box AP, held-back images', '', curves)], path)


CLAIM = Claim(
    name='detection',
    title='Normalization helps detection',
    claim="SOFT++'s symmetric normalization makes detectors better: the same backbone "
    'without it detects less.',
    paper='SOFT++, Tables 4 and 5: RetinaNet 1x with SOFT++-Tiny, 41.9 AP.',
    setting='SOFT++-Tiny with and without its normalization (without it, with the '
    "ridge 0.01 of SOFT's code) in the project's RetinaNet, from scratch: 400 steps "
    'of 4 images of 96 pixels, FPN and heads with 64 channels and two convolutions, '
    'the same order of the same images. AdamW, lr 6e-4, weight decay 0.05, cosine.',
    limits='The papers start from ImageNet weights and have 67,000 tokens in stage 1; '
    'here there are 576, where sums without normalization are a hundred times smaller.',
    settings=dict(detectors.SETTINGS, images=dict(detection=detectors.IMAGES)),
    smoke=dict(
        arch=detectors.TINY,
        recipe=detectors.SMOKE_RECIPE,
        images=dict(detection=(4, 2)),
    ),
    minutes=15,
    units=units,
    measure=measure,
    parts=(
        Part(
            'AP with normalization less that without',
            lambda x: x['SOFT++']['ap'] - x['SOFT']['ap'],
            doubt=scores_doubt('ap', 0.02),
        ),
    ),
    tables=tables,
    plot=plot,
    data=('detection',),
)
