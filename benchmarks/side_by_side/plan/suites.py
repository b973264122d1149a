"""The suites at a GPU's sizes, and the comparisons that need one."""

import importlib.util

from .. import registry
from ..cases import Case, flash
from ..models import backbone, timm_backbone
from .measuring import case_units
from .unit import BATCHES, DTYPES, IMAGES, Settings


def ops(settings: Settings):
    """Functions by themselves; their products at detection size."""
    attentions = [
        registry.softmax_free(image, stage)
        for image in IMAGES
        for stage in range(len(registry.STAGES))
    ]
    names = {case.name for case in attentions}
    others = [case for case in registry.ops() if case.name not in names]
    return case_units(without_limits(attentions + others), settings, BATCHES, DTYPES)


def solvers(settings: Settings):
    """Ways to the inverse, always in float32."""
    return case_units(
        without_limits(registry.solvers()), settings, BATCHES, ('float32',)
    )


def backbones(settings: Settings):
    """The suite, with timm's baselines where mmdet is missing."""
    cases = [
        case._replace(
            variants=dict(at_hand(case.shape, item) for item in case.variants.items())
        )
        for case in registry.backbones()
    ]
    return case_units(without_limits(cases), settings, BATCHES, DTYPES)


def attentions(settings: Settings):
    """Swin-T and CSWin-T with every attention, at all sizes of images."""
    models = {case.name: case for case in registry.attentions()}
    cases = [
        case._replace(shape=(1, 3, *image), paper={})
        for image in IMAGES
        for case in models.values()
    ]
    return case_units(without_limits(cases), settings, BATCHES, DTYPES)


def elfatt(settings: Settings):
    """Swin-T with ELFATT beside softmax attention by FlashAttention alone."""
    swin = dict(type='SwinTransformer', arch='tiny')
    softmax = 'softmax, FlashAttention'
    case = Case(
        'Swin-T',
        {
            softmax: backbone(**swin, attention='global', context=flash),
            'ELFATT': backbone(**swin, attention='elfatt'),
            'windows': backbone(**swin, attention='local'),
        },
        (1, 3, 800, 1280),
        paper={('ELFATT', softmax): (2.6, 2.6)},
    )
    dtypes = settings.pick(('bfloat16', 'float16'), ('bfloat16',))
    return case_units([case], settings, (16, 2, 1), dtypes)


def training(settings: Settings):
    """Training steps of SOFT++-T beside PVTv2-B1 and Swin-T."""
    cases = [
        Case(
            'tiny backbones',
            dict(
                [
                    at_hand((1, 3, *image), ('PVTv2-B1 (mmdet)', None)),
                    at_hand((1, 3, *image), ('Swin-T (mmdet)', None)),
                    ('Swin-T (ours)', backbone(type='SwinTransformer', arch='tiny')),
                    ('SOFT++-T', backbone(type='SOFTPlusPlus', arch='tiny')),
                ]
            ),
            (1, 3, *image),
            steps=('training step',),
        )
        for image in IMAGES
    ]
    return case_units(cases, settings, BATCHES, DTYPES)


def memory(settings: Settings):
    """Memory against the number of tokens."""
    return case_units(registry.memory(), settings, (1,), ('float32', 'bfloat16'))


def without_limits(cases):
    """Cases without the rounds that are limited on a CPU."""
    return [case._replace(rounds={}) for case in cases]


def at_hand(shape, item):
    """A variant of mmdet as it is, or timm's model in its place where mmdet is
    missing.

    Args:
        shape (tuple[int]): Of the input.
        item (tuple): The variant's name and what builds it.

    Returns:
        tuple: The same of what is there.
    """
    name, build = item
    references = {
        'PVTv2-B1 (mmdet)': (registry.PVT_V2_B1, 'pvt_v2_b1', {}),
        'Swin-T (mmdet)': (
            registry.SWIN_T,
            'swin_tiny_patch4_window7_224',
            dict(img_size=shape[2:], strict_img_size=False, drop_path_rate=0.2),
        ),
    }
    if name not in references:
        return name, build
    cfg, timm_name, options = references[name]
    if importlib.util.find_spec('mmdet') is not None:
        return name, backbone(**cfg)
    return name.replace('mmdet', 'timm'), timm_backbone(timm_name, **options)


def number(rows):
    """How much was measured."""
    good = [row for row in rows if not row.get('error')]
    large = sum(row.get('error') == 'out of memory' for row in rows)
    others = len(rows) - len(good) - large
    return (
        f'{len(good)} measured'
        + (f', {large} out of memory' if large else '')
        + (f', {others} left out' if others else '')
    )


def against(variant, baseline, step, rows):
    """How much faster a variant is at the first size, beside what is measured."""
    found = [
        row
        for row in rows
        if row['variant'] == variant
        and row['baseline'].startswith(baseline)
        and row['step'] == step
        and row.get('ratio')
    ]
    if not found:
        return f'{number(rows)}; {variant} was not compared with {baseline}'
    row = found[0]
    shape = '×'.join(map(str, row['shape']))
    return (
        f'{variant} {1 / row["ratio"]:.2f}x as fast as {row["baseline"]} at {shape}, '
        f'{row["dtype"]}, {step}'
    )
