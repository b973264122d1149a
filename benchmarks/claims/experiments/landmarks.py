"""How landmarks are sampled, and how many there are."""

from ..claim import Claim, Part, scores_doubt, spread, values_of
from ..classification import accuracy, trained
from ..plots import Panel, plot_bars
from . import soft_models

VARIANTS = {
    'convolution': {},
    'average pooling': dict(sampler='pool'),
    'random': dict(sampler='random'),
    'biased': dict(sampler='biased'),
    'cells of 8, 4, 2': dict(sampling_ratios=[8, 4, 2, 1]),
    'cells of 2, 2, 2': dict(sampling_ratios=[2, 2, 2, 1]),
}
DEFAULT = 'convolution'


def units(settings):
    return list(VARIANTS)


def measure(unit, context):
    cfg = soft_models.backbone(context.settings)
    model = trained(dict(cfg, **VARIANTS[unit]), context)
    side = context.settings['recipe']['side']
    return dict(accuracy=accuracy(model, context, side))


def more(of_seed, name, other):
    return of_seed[name]['accuracy'] - of_seed[other]['accuracy']


SPREAD = scores_doubt('accuracy', 0.45)


def tables(runs):
    rows = [[unit, spread(values_of(runs, unit, 'accuracy'))] for unit in VARIANTS]
    return [('Accuracy on held-back images', ['landmarks', 'accuracy'], rows)]


def plot(runs, path):
    curves = {unit: values_of(runs, unit, 'accuracy') for unit in VARIANTS}
    plot_bars([Panel('SOFT++', 'accuracy, held-back images', '', curves)], path)


CLAIM = Claim(
    name='landmarks',
    title='How landmarks are sampled, and how many',
    claim='Landmarks by convolution are at least as good as by average pooling or at '
    'random, and these are better than the first tokens ("biased"). More landmarks '
    'than the default bring nothing.',
    paper='SOFT++, Tables 9 and 10 (SOFT, Tables 4a and 4b): convolution 80.9, '
    'average pooling 80.8, random 80.8, biased 79.9; 36, 49, 64 and 81 landmarks: '
    '80.5, 80.9, 80.9, 80.4.',
    setting='SOFT++ with 32 to 128 channels, 800 steps on images of 64 pixels. One '
    'landmark for each cell of 4, 2 and 2 tokens a side: 16, 16 and 4 landmarks, '
    "fewer than the papers' 49, which a map of 16 × 16 has no room for. Coarser cells "
    'have 4, 4 and 4, finer ones 64, 16 and 4. Differences of 0.02 count as nothing: '
    'that is 12 of 600 images.',
    limits="The papers' differences of 0.1 are far below what 600 images can show.",
    settings=soft_models.SETTINGS,
    smoke=soft_models.SMOKE,
    minutes=20,
    units=units,
    measure=measure,
    parts=(
        *(
            Part(
                f'accuracy with {name} less that with biased sampling',
                lambda x, name=name: more(x, name, 'biased'),
                doubt=SPREAD,
            )
            for name in ('convolution', 'average pooling', 'random')
        ),
        Part(
            'accuracy with convolution less that with average pooling',
            lambda x: more(x, DEFAULT, 'average pooling'),
            margin=-0.02,
            doubt=SPREAD,
        ),
        Part(
            'accuracy with the default number of landmarks less that with finer cells',
            lambda x: more(x, DEFAULT, 'cells of 2, 2, 2'),
            margin=-0.02,
            doubt=SPREAD,
        ),
    ),
    tables=tables,
    plot=plot,
    data=('classification',),
)
