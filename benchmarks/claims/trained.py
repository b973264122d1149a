"""Claims of the papers on trained networks: which parts are compared, and why."""

from typing import NamedTuple

from .claim import Part
from .looks import SIZES
from .models import NO_INVERSE, RIDGES, SIDE

TIE = 0.02  # of any score
GATES = dict(imagenette=0.6, cifar10=0.5, bccd=0.3, camvid=0.2)


class Claim(NamedTuple):
    """A claim of a paper, or a question of ours.

    Attributes:
        title (str): A few words.
        text (str): What the paper says and where, and what is done here; Markdown.
        parts (list[Part]): What is judged.
    """

    title: str
    text: str
    parts: list[Part]


CLAIMS = [
    Claim(
        'Does the task need attention?',
        'A control of everything below: where a model without attention is as good, '
        'equal attentions would mean nothing. It has the same parameters, its local '
        'filters included, and returns 0 for the product with the attention matrix in '
        'all stages but the last one.',
        [
            Part(
                f'{name} less no attention', (name, f'{pyramid} no attention'), gate=0.0
            )
            for name, pyramid in (
                ('SOFT++ bare', 'SOFT++ bare'),
                ('SOFT++', 'SOFT++'),
                ('Swin softmax', 'Swin'),
            )
        ],
    ),
    Claim(
        'Must the inverse be twenty Newton steps?',
        "A question of ours. `solver='cholesky'` with a ridge computes another "
        'operator, for less time. SOFT++ bare has means of cells for landmarks and no '
        'local filters, so that its attention is used. The control is a ridge of 100, '
        'which is hardly an inverse. Trained with a ridge, the model counts as equal '
        f'if its score differs by less than {TIE:g}: top-1 accuracy on Imagenette, and '
        'after fine-tuning of the same models AP at an IoU of 0.5 on BCCD, and the '
        'mean IoU on CamVid.',
        [
            Part(
                f'{data}: ridge {ridge:g} equals Newton',
                (f'SOFT++ bare ridge {ridge:g}', 'SOFT++ bare'),
                TIE,
                equal=True,
                gate=GATES[data],
                data=data,
            )
            for data in ('imagenette', 'bccd', 'camvid')
            for ridge in (*RIDGES, NO_INVERSE)
        ],
    ),
    Claim(
        'May the inverse of trained weights be another one?',
        'The same question without training: SOFT++ that is trained with Newton steps, '
        'tested with the inverse with a ridge.',
        [
            Part(
                f'tested with ridge {ridge:g} equals Newton',
                (f'SOFT++ bare tested with ridge {ridge:g}', f'SOFT++ bare at {SIDE}'),
                TIE,
                equal=True,
                paired=True,
            )
            for ridge in (*RIDGES, NO_INVERSE)
        ],
    ),
    Claim(
        'Larger test images',
        "SOFT++'s Table 6: trained at 224 pixels, tested at 224, 384 and 512, "
        'SOFT-Small has 82.5, 33.7 and 0.14, SOFT++-Small 82.6, 82.6 and 80.2. Here, '
        'they are trained at 112 and tested at 192 and 256: 49 landmarks become 144 '
        'and 256. What keeps its accuracy loses at most 0.05; what falls apart loses '
        'more than 0.2. The control without attention says what the size does to '
        'convolutions.',
        [
            *(
                Part(
                    f'{name} at {side} less at {SIDE} pixels',
                    (f'{name} at {side}', f'{name} at {SIDE}'),
                    -0.05,
                    paired=True,
                    gate=0.0,
                )
                for name in ('SOFT++ bare', 'Swin softmax', 'SOFT++ bare no attention')
                for side in SIZES[1:]
            ),
            *(
                Part(
                    f'SOFT bare at {SIDE} less at {side} pixels',
                    (f'SOFT bare at {SIDE}', f'SOFT bare at {side}'),
                    0.2,
                    paired=True,
                    gate=0.0,
                )
                for side in SIZES[1:]
            ),
        ],
    ),
    Claim(
        'Landmarks by convolution',
        "SOFT's paper compares ways to choose landmarks; the convolution is the one it "
        'takes. The local filters of up to 9 × 9 tokens could do the task alone, so '
        'these models have none. The control has no attention either.',
        [
            Part(
                f'convolution less {x}',
                ('SOFT++ bare conv', f'SOFT++ bare {x}'),
                gate=0,
            )
            for x in ('pool', 'random', 'biased', 'no attention')
        ],
    ),
    Claim(
        'ELFATT is as accurate as softmax',
        "ELFATT's paper has Swin-T-ELFATT as accurate as softmax attention in the same "
        'places, and more accurate than efficient attention.',
        [
            Part(
                'ELFATT equals softmax',
                ('Swin ELFATT', 'Swin softmax'),
                TIE,
                equal=True,
            ),
            Part('ELFATT less efficient attention', ('Swin ELFATT', 'Swin efficient')),
        ],
    ),
    Claim(
        'AttnScale and FeatScale make deep ViTs better',
        '*Anti-Oversmoothing in Deep Vision Transformers*, Appendix G.1: fine-tuning '
        'from the same weights, on CIFAR-10 with patches of 4 × 4. Seeds are orders of '
        'the data, so that pairs differ in the technique only. FeatScale twice is the '
        'form of the official code, 1 + 2t.',
        [
            *(
                Part(
                    f'{depth} layers: {technique} less plain',
                    (f'ViT {depth} layers, {technique}', f'ViT {depth} layers, plain'),
                    paired=True,
                    gate=GATES['cifar10'],
                    data='cifar10',
                )
                for depth in (12, 24)
                for technique in ('AttnScale', 'FeatScale', 'FeatScale twice')
            ),
            *(
                Part(
                    f'{depth} layers, last block: {measure} with {technique}, {sign}',
                    order(
                        f'ViT {depth} layers, {technique} {measure}',
                        f'ViT {depth} layers, plain {measure}',
                    ),
                    paired=True,
                    gate=0.0,
                    data='cifar10',
                )
                for depth in (12, 24)
                for technique in ('AttnScale', 'FeatScale')
                for measure, sign, order in (
                    ('proportion of high frequencies', 'higher', lambda *x: x),
                    ('similarity of tokens', 'lower', lambda *x: x[::-1]),
                )
            ),
        ],
    ),
]
