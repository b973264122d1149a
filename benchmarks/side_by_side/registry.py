"""Suites of cases, each measured beside its baseline.

Legend: h heads, (H, W) map, N = H * W tokens, m landmarks, d head dim.
"""

from functools import partial

import torch
from torch.nn.functional import scaled_dot_product_attention

from mmlinattn import functional
from mmlinattn.functional import cholesky_solve

from .baselines import (
    analytic_attention,
    explicit_attention,
    explicit_in_models,
    kernel_matrix,
)
from .cases import (
    Case,
    Op,
    attention_inputs,
    product_inputs,
    softmax_free_inputs,
    solver_inputs,
    unfused,
)
from .mmcv_ops import mmcv_ops
from .models import (
    LINEAR,
    PVT_V2_B1,
    SOFTMAX,
    SWIN_T,
    ZOO,
    attention_stack,
    backbone,
    detection_batch,
    detector,
    references,
    scaled,
)

# SOFT-Tiny's softmax-free stages: stride, landmarks' ratio, heads. d is 32.
STAGES = ((4, 8, 2), (8, 4, 4), (16, 2, 10))
HEAD_DIMS = 32
DETECTION = (800, 1344)
CLASSIFICATION = (224, 224)


def stage_map(image_shape, stage):
    """(1, h * d, H, W) of one of SOFT-Tiny's stages."""
    stride, _, num_heads = STAGES[stage]
    return (1, num_heads * HEAD_DIMS, *(-(-side // stride) for side in image_shape))


def ops() -> list[Case]:
    """Functions at the shapes of SOFT-Tiny's stages."""
    return [
        *(
            softmax_free(image_shape, stage)
            for image_shape in (DETECTION, CLASSIFICATION)
            for stage in range(len(STAGES))
        ),
        *(
            product(stage, transposed)
            for stage in range(len(STAGES))
            for transposed in (False, True)
        ),
        linear_attentions(),
    ]


def softmax_free(image_shape, stage) -> Case:
    """The operator of SOFT++ by itself."""
    _, ratio, num_heads = STAGES[stage]
    return Case(
        f'softmax-free attention, stage {stage + 1}',
        {
            'explicit': partial(Op, explicit_attention),
            'explicit, analytic gradient': partial(Op, analytic_attention),
            'ours': partial(Op, functional.softmax_free_attention),
        },
        stage_map(image_shape, stage),
        small=(1, num_heads * HEAD_DIMS, 3 * ratio, 4 * ratio),
        inputs=partial(softmax_free_inputs, num_heads=num_heads, ratio=ratio),
        rounds={}
        if image_shape == CLASSIFICATION
        else {'explicit': 3, 'explicit, analytic gradient': 5},
    )


def product(stage, transposed) -> Case:
    """A product with P (m, N) or its transpose alone, beside softmax attention of the
    same queries, keys and values."""
    _, ratio, num_heads = STAGES[stage]
    return Case(
        f'{"P^T Y" if transposed else "P V"}, stage {stage + 1}',
        {
            'explicit': partial(Op, lambda q, k, v: kernel_matrix(q, k) @ v),
            'softmax attention': partial(Op, scaled_dot_product_attention),
            'fused': partial(Op, functional.gaussian_product),
        },
        stage_map(DETECTION, stage),
        small=(1, num_heads * HEAD_DIMS, 3 * ratio, 4 * ratio),
        inputs=partial(
            product_inputs, num_heads=num_heads, ratio=ratio, transposed=transposed
        ),
    )


def linear_attentions() -> Case:
    """ELFATT's two halves beside softmax attention, on a map of stage 2."""
    return Case(
        "softmax attention and ELFATT's halves",
        {
            'softmax': partial(
                Op, lambda q, k, v, hw: scaled_dot_product_attention(q, k, v)
            ),
            'efficient': partial(
                Op, lambda q, k, v, hw: functional.efficient_attention(q, k, v)
            ),
            'blocks of 196': partial(
                Op,
                lambda q, k, v, hw: functional.local_attention(q, k, v, hw, (14, 14)),
            ),
        },
        stage_map(DETECTION, 1),
        small=(1, 4 * HEAD_DIMS, 16, 24),
        inputs=partial(attention_inputs, num_heads=4),
    )


def solvers() -> list[Case]:
    """Ways to apply the inverse of A at the shapes of SOFT-Tiny's stages."""
    return [solver(stage) for stage in range(len(STAGES))]


def solver(stage) -> Case:
    """Ways to the inverse of A, times a thin matrix; Cholesky's is another
    operator than those before it."""
    _, ratio, num_heads = STAGES[stage]
    return Case(
        f'solver, stage {stage + 1}',
        {
            'newton': partial(Op, partial(inverse_times, solver='newton')),
            'polynomial': partial(Op, partial(inverse_times, solver='polynomial')),
            'spectral': partial(Op, partial(inverse_times, solver='spectral')),
            'cholesky, ridge 0.01': partial(Op, ridge_inverse_times),
        },
        stage_map(DETECTION, stage),
        small=(1, num_heads * HEAD_DIMS, 3 * ratio, 4 * ratio),
        inputs=partial(solver_inputs, num_heads=num_heads, ratio=ratio),
        rounds={'newton': 5},
    )


def inverse_times(a, x, solver):
    return functional.newton_pinv(a, rhs=x, solver=solver)


def ridge_inverse_times(a, x):
    ridge = 0.01 * torch.eye(a.size(-1), dtype=a.dtype, device=a.device)
    return cholesky_solve(a + ridge, x)


def tiny_backbones(image_shape, **options) -> Case:
    """SOFT++-T and ELFATT beside others of their size."""
    models = {
        **references(image_shape),
        'SOFT++-T': backbone(type='SOFTPlusPlus', arch='tiny'),
        'SOFT++-T, linear': backbone(type='LinearSOFTPlusPlus'),
        'Swin-T-ELFATT': backbone(type='SwinTransformer', attention='elfatt'),
    }
    return Case('tiny backbones', models, (1, 3, *image_shape), **options)


def backbones() -> list[Case]:
    """Backbones beside the official form, and beside others of their size."""
    cases = []
    for image_shape in (DETECTION, (512, 512), CLASSIFICATION):
        shape = (1, 3, *image_shape)
        soft = dict(type='SOFT', arch='tiny', attn_norm=True)
        cases.append(
            Case(
                'SOFT-Norm-Tiny',
                {
                    'explicit': backbone(**soft, context=explicit_in_models),
                    'ours': backbone(**soft),
                },
                shape,
                rounds={'explicit': 2} if image_shape == DETECTION else {},
            )
        )
        cases.append(tiny_backbones(image_shape))
    cases.append(tiny_backbones((1333, 2000), steps=('forward',)))
    return cases


def detectors() -> list[Case]:
    """Training steps and predictions of whole detectors."""
    configs = {'RetinaNet': 'retinanet', 'Mask R-CNN': 'mask-rcnn'}
    cases = []
    for name, method in configs.items():
        config = f'soft/{method}_softpp-t_fpn_1x_coco.py'
        linear = f'soft/{method}_softpp-t-linear_fpn_1x_coco.py'
        cases.append(
            Case(
                name,
                {
                    'PVTv2-B1 (mmdet)': detector(config, PVT_V2_B1),
                    'Swin-T (mmdet)': detector(config, SWIN_T),
                    'SOFT++-T': detector(config),
                    'SOFT++-T, linear': detector(linear),
                },
                (1, 3, *DETECTION),
                inputs=partial(detection_batch, with_mask=name == 'Mask R-CNN'),
            )
        )
    return cases


def attentions() -> list[Case]:
    """The ELFATT paper's comparison: its speed-ups are those that it claims at
    such sizes, in mixed precision on a GPU."""
    models = {
        'Swin-T': dict(type='SwinTransformer', arch='tiny'),
        'CSWin-T': dict(type='CSWinTransformer', arch='t24181'),
    }
    names = ('elfatt', 'local', 'efficient', 'agent', 'flatten')
    return [
        Case(
            name,
            {
                'global': backbone(**cfg, attention='global'),
                'global, unfused': backbone(**cfg, attention='global', context=unfused),
                **{x: backbone(**cfg, attention=x) for x in names},
            },
            (1, 3, *image_shape),
            steps=('forward',),
            rounds={'global': 1, 'global, unfused': 1},
            paper={('elfatt', 'global'): (2, 3), ('elfatt', 'global, unfused'): (4, 7)},
        )
        for name, cfg in models.items()
        for image_shape in ((800, 1280), (512, 2048))
    ]


def zoo() -> list[Case]:
    """Every attention in all blocks of Swin-T, for docs/attentions.md."""
    return [
        Case(
            'Swin-T',
            {
                name: backbone(type='SwinTransformer', **options)
                for name, options in ZOO.items()
            },
            (1, 3, *image_shape),
            steps=('forward',),
            rounds={'softmax': 1} if image_shape == DETECTION else {},
        )
        for image_shape in (DETECTION, CLASSIFICATION)
    ]


def memory() -> list[Case]:
    """Memory against the number of tokens: as in SOFT's Figure 1b, and of one
    linear attention alone on ever larger maps."""
    num_landmarks = 49
    cases = []
    for factor in range(1, 9):  # N = 784 p
        shape = (1, 384, 28, 28 * factor)
        names = [*SOFTMAX, *(x for x in LINEAR if x not in ('agent', 'flatten'))]
        cases.append(
            Case(
                '12 layers',
                {
                    name: attention_stack(name, shape, num_landmarks, 12, 12)
                    for name in names
                },
                shape,
                small=(1, 384, 7, 14),
                timed=False,
            )
        )
    for hw_shape in ((100, 125), (125, 200), (200, 250), (250, 400)):
        shape = (1, 64, *hw_shape)
        cases.append(
            Case(
                'one attention',
                {
                    name: attention_stack(name, shape, num_landmarks, 2)
                    for name in LINEAR
                },
                shape,
                small=(1, 64, 14, 14),
                steps=('forward+backward',),
                timed=False,
            )
        )
    return cases


def large() -> list[Case]:
    """Memory that an image of 1333×2000 pixels takes, in the smaller models of each
    family. CaiT's talking heads hold a matrix of tokens by tokens in every layer: its
    training does not fit."""
    models = {
        'tiny backbones': {
            'SOFT++-T': dict(type='SOFTPlusPlus', arch='tiny'),
            'SOFT-T': dict(type='SOFT', arch='tiny'),
            'Swin-T': dict(type='SwinTransformer', arch='tiny'),
            'Swin-T ELFATT': dict(
                type='SwinTransformer', arch='tiny', attention='elfatt'
            ),
            'CSWin-T': dict(type='CSWinTransformer', arch='t24181'),
            'CSWin-T ELFATT': dict(
                type='CSWinTransformer', arch='t24181', attention='elfatt'
            ),
        },
        'DeiT': {'DeiT-S': dict(type='VisionTransformer', arch='deit-small')},
        'CaiT': {'CaiT-XXS24': dict(type='CaiT', arch='xxs24')},
        'small backbones': {
            'SOFT++-S': dict(type='SOFTPlusPlus', arch='small'),
            'SOFT-S': dict(type='SOFT', arch='small'),
            'Swin-S': dict(type='SwinTransformer', arch='small'),
        },
    }
    return [
        Case(
            name,
            {variant: backbone(**cfg) for variant, cfg in variants.items()},
            (1, 3, 1333, 2000),
            steps=('forward',) if name == 'CaiT' else ('forward', 'forward+backward'),
            timed=False,
        )
        for name, variants in models.items()
    ]


def antioversmoothing() -> list[Case]:
    """The paper's models without and with each technique.

    The scaling vectors are drawn at random: at zero a compiler could leave
    them out.
    """
    models = {
        'DeiT-S': dict(type='VisionTransformer', arch='deit-small'),
        'Swin-S': dict(type='SwinTransformer', arch='small'),
        'CaiT-S24': dict(type='CaiT', arch='s24', out_type='cls_token'),
    }
    return [
        Case(
            name,
            {
                'plain': backbone(**cfg),
                'AttnScale': scaled(backbone(**cfg, attn_scale=True)),
                'FeatScale': scaled(backbone(**cfg, feat_scale=True)),
            },
            (1, 3, 224, 224),
        )
        for name, cfg in models.items()
    ]


SUITES = {
    suite.__name__: suite
    for suite in (
        ops,
        solvers,
        backbones,
        detectors,
        attentions,
        zoo,
        memory,
        large,
        antioversmoothing,
        mmcv_ops,
    )
}
