"""Trained at one size, tested at larger ones."""

from side_by_side.plot import Panel

from ..claim import Claim, Part, scores_doubt, spread, values_of
from ..classification import accuracy, trained
from . import soft_models

# The paper's test sizes over its training size.
FACTORS = (1, 384 / 224, 512 / 224)
LABELS = ('1.0x', '1.7x', '2.3x')
LEARNED = scores_doubt('best', 0.45)


def measure(unit, context):
    model = trained(soft_models.backbone(context.settings, unit), context)
    side = context.settings['recipe']['side']
    scores = [accuracy(model, context, round(factor * side)) for factor in FACTORS]
    return dict(scores=scores, start=1 / context.data.num_classes(), best=scores[0])


def kept(of_seed, unit, place):
    """Share of the score above chance that is left at a size."""
    scores, start = of_seed[unit]['scores'], of_seed[unit]['start']
    first = scores[0] - start
    return (scores[place] - start) / first if first > 0 else float('nan')


def tables(runs):
    rows = [
        [unit, *(spread(x) for x in zip(*values_of(runs, unit, 'scores')))]
        for unit in soft_models.NAMES
    ]
    caption = 'Accuracy, by test size over training size'
    return [(caption, ['model', *LABELS], rows)]


def panels(runs):
    curves = {
        unit: (list(FACTORS), values_of(runs, unit, 'scores'))
        for unit in soft_models.NAMES
    }
    return [Panel('', 'test size over training size', 'accuracy', curves)]


CLAIM = Claim(
    name='sizes',
    title='Larger test images',
    claim='A model trained at one size and tested at a larger one keeps its accuracy '
    "with SOFT++'s normalization, and loses it without.",
    paper='SOFT++, Table 6: trained at 224 pixels, tested at 224, 384 and 512, '
    'SOFT-Small has 82.5, 33.7 and 0.14, SOFT++-Small 82.6, 82.6 and 80.2.',
    setting='SOFT and SOFT++ with 32 to 128 channels are trained for 800 steps at 64 '
    'pixels and tested at 64, 110 and 146, the same ratios. What counts is the share '
    'of the score above chance that is left. SOFT++ holds with at least 0.9 at 1.7x '
    'and 0.8 at 2.3x, SOFT falls apart with at most 0.5 at either, the papers having '
    '1.00, 0.97, 0.41 and 0.00.',
    limits='256 tokens grow to 1,369 in stage 1, where the papers go from 3,136 to '
    '16,384: the ratio is the same, but the sums that lack normalization are smaller.',
    settings=soft_models.SETTINGS,
    smoke=soft_models.SMOKE,
    minutes=15,
    units=lambda settings: list(soft_models.NAMES),
    measure=measure,
    parts=(
        *(
            Part(
                f"share of SOFT++'s accuracy above chance that is left at {LABELS[i]}",
                lambda x, i=i: kept(x, 'SOFT++', i),
                margin=margin,
                doubt=LEARNED,
            )
            for i, margin in ((1, 0.9), (2, 0.8))
        ),
        *(
            Part(
                f"0.5 less the share of SOFT's that is left at {LABELS[i]}",
                lambda x, i=i: 0.5 - kept(x, 'SOFT', i),
                doubt=LEARNED,
            )
            for i in (1, 2)
        ),
    ),
    tables=tables,
    panels=panels,
)
