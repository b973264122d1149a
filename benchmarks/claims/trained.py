"""Parts of the papers' claims on trained networks: which models are compared. The page
says what the papers say, and why these."""

from itertools import product

from .claim import Part
from .looks import MEASURES, RIDGES, SIZES
from .models import NO_INVERSE, SIDE
from .plan import DENSE_DATA, TECHNIQUES

# Of equal scores.
TIES = dict(imagenette=0.01, cifar10=0.01, bccd=0.02, camvid=0.02)
GATES = dict(imagenette=0.6, cifar10=0.5, flat=0.45, bccd=0.3, camvid=0.2)
BARE, NONE, FLAT = 'SOFT++ bare', 'SOFT++ bare no attention', 'flat SOFT++'


def less(a, b, text='', data='imagenette', **options):
    """The score of the first model less that of the other is above a margin."""
    text = f'{data}: ' * (data != 'imagenette') + (text or f'{a} less {b}')
    options.setdefault('gate', GATES['flat' if a.startswith('flat') else data])
    return Part(text, (a, b), data=data, **options)


def equal(a, b, text='', data='imagenette', **options):
    """Two models have the same score, to within :data:`TIES`."""
    options.update(margin=TIES[data], equal=True)
    return less(a, b, text or f'{a} equals {b}', data, **options)


def ridged(ridge, data):
    """Equality with the model of Newton's steps, with the same weights at the start."""
    name = FLAT if data == 'cifar10' else BARE
    return equal(f'{name} ridge {ridge:g}', name, data=data, paired=True)


def changed(name, ridge):
    """Equality with Newton's steps of a model that is trained with them."""
    pair = f'{name} tested with ridge {ridge:g}', f'{name} at {SIDE}'
    text = f'{name}, only tested with ridge {ridge:g}, equals {name}'
    return equal(*pair, text, paired=True, gate=0)


def larger(name):
    """A model loses at most 0.05 on larger photos; without normalization, over 0.2."""
    here, there = f'{name} at {SIDE}', f'{name} at {SIZES[-1]}'
    options = dict(paired=True, gate=0)
    if name == 'SOFT':
        return less(here, there, margin=0.2, **options)
    return less(there, here, margin=-0.05, **options)


def scaled(depth, technique):
    """A ViT that is fine-tuned with a technique, and the same without."""
    pair = [f'ViT {depth} layers, {x}' for x in (technique, 'plain')]
    text = f'{depth} layers: {technique} less plain'
    return less(*pair, text, data='cifar10', paired=True)


def less_smooth(technique, measure):
    """Tokens of the last layer are less alike, or have more of high frequencies."""
    names = (technique, 'plain')[:: -1 if 'similarity' in measure else 1]
    pair = [f'ViT 24 layers, {x} {measure}' for x in names]
    text = f'24 layers, {measure}: {" less ".join(names)}'
    return less(*pair, text, data='cifar10', paired=True, gate=0)


# By the name of the claim's figure.
CLAIMS = dict(
    task=[
        less(FLAT, 'flat no attention', data='cifar10', gate=0),
        *(less(BARE, NONE, data=data, gate=0) for data in ('imagenette', *DENSE_DATA)),
        less('SOFT++', 'SOFT++ no attention', gate=0),
        less('Swin softmax', 'Swin no attention', gate=0),
        less('flat softmax', 'flat no attention', data='cifar10', gate=0),
    ],
    inverse=[
        *(ridged(ridge, 'cifar10') for ridge in (0.001, 1, NO_INVERSE)),
        *(ridged(ridge, 'imagenette') for ridge in (0.1, NO_INVERSE)),
        *(ridged(0.1, data) for data in DENSE_DATA),
        *(changed(BARE, ridge) for ridge in RIDGES),
    ],
    landmarks=[
        changed('SOFT++', NO_INVERSE),
        equal(f'{FLAT} 4 landmarks', FLAT, data='cifar10', paired=True),
        *(
            less(f'{FLAT} conv', other, data='cifar10', gate=0)
            for other in (FLAT, f'{FLAT} random', 'flat no attention')
        ),
    ],
    sizes=[
        *(larger(name) for name in ('SOFT', 'SOFT++', BARE, 'Swin softmax', NONE)),
        *(
            less('SOFT bare power of N', f'{name} power of N', margin=0.5, gate=0)
            for name in (BARE, 'Swin softmax')
        ),
    ],
    normalization=[
        less(BARE, 'SOFT bare', gate=0),
        *(
            less(f'SOFT++{epochs}', f'SOFT{epochs}', data=data, gate=0)
            for data, epochs in product(DENSE_DATA, (', one epoch', ''))
        ),
    ],
    backbones=[
        equal('Swin ELFATT', 'Swin softmax'),
        less('Swin ELFATT', 'Swin efficient'),
        equal('flat ELFATT', 'flat softmax', data='cifar10'),
        less('flat ELFATT', 'flat efficient', data='cifar10'),
        *(equal('Swin ELFATT', 'Swin softmax', data=data) for data in DENSE_DATA),
        *(less(BARE, 'Swin softmax', data=data) for data in DENSE_DATA),
        *(
            less(f'{name} maps', 'Swin softmax maps', margin=-0.1, gate=0)
            for name in ('Swin ELFATT', 'Swin no attention')
        ),
    ],
    oversmoothing=[
        *(scaled(*x) for x in product((12, 24), TECHNIQUES) if x[1] != 'plain'),
        *(less_smooth(*x) for x in product(('AttnScale', 'FeatScale'), MEASURES)),
    ],
)
