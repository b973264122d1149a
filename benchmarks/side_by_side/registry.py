"""Suites of cases, each measured beside its baseline.

Legend: h heads, (H, W) map, N = H * W tokens, m landmarks, d head dim.
"""

from functools import partial

import torch
from torch.nn.functional import scaled_dot_product_attention

from mmlinattn.functional import (
    cholesky_solve,
    gaussian_product,
    newton_pinv,
    softmax_free_attention,
)

from .baselines import explicit_attention, explicit_in_models, kernel_matrix
from .cases import Case, Op, product_inputs, softmax_free_inputs, solver_inputs, unfused
from .mmcv_ops import mmcv_ops
from .models import (
    PVT_V2_B1,
    RESNET_50,
    SWIN_T,
    ZOO,
    backbone,
    detection_batch,
    detector,
    fuse_attention,
    timm_config,
    timm_maps,
    timm_swin,
    torchvision_swin,
)

# SOFT-Tiny's softmax-free stages: stride, landmarks' ratio, heads. d is 32.
STAGES = ((4, 8, 2), (8, 4, 4), (16, 2, 10))
HEAD_DIMS = 32
DETECTION = (800, 1344)
CLASSIFICATION = (224, 224)


def on_stage(name, functions, stage, inputs, image_shape=DETECTION) -> Case:
    """Return functions at the shape of one of SOFT-Tiny's stages."""
    stride, ratio, num_heads = STAGES[stage]
    dims = num_heads * HEAD_DIMS
    return Case(
        f'{name}, stage {stage + 1}',
        {key: partial(Op, function) for key, function in functions.items()},
        (1, dims, *(-(-side // stride) for side in image_shape)),
        small=(1, dims, 3 * ratio, 4 * ratio),
        inputs=partial(inputs, num_heads=num_heads, ratio=ratio),
    )


def ops() -> list[Case]:
    """Return the operator of SOFT++ by itself, and a product with P (m, N) or its
    transpose alone, beside softmax attention of the same queries, keys and values."""
    operators = dict(explicit=explicit_attention, ours=softmax_free_attention)
    products = {
        'explicit': lambda q, k, v: kernel_matrix(q, k) @ v,
        'softmax attention': scaled_dot_product_attention,
        'fused': gaussian_product,
    }
    stages, transposed = range(len(STAGES)), partial(product_inputs, transposed=True)
    return [
        *(
            on_stage(
                'softmax-free attention', operators, stage, softmax_free_inputs, shape
            )
            for shape in (DETECTION, CLASSIFICATION)
            for stage in stages
        ),
        *(
            on_stage(name, products, stage, inputs)
            for stage in stages
            for name, inputs in (('P V', product_inputs), ('P^T Y', transposed))
        ),
    ]


def solvers() -> list[Case]:
    """Return ways to the inverse of A, times a thin matrix; Cholesky's is another
    operator than those before it."""

    def cholesky(a, x):
        ridge = 0.01 * torch.eye(a.size(-1), dtype=a.dtype, device=a.device)
        return cholesky_solve(a + ridge, x)

    functions = {
        name: lambda a, x, name=name: newton_pinv(a, rhs=x, solver=name)
        for name in ('newton', 'polynomial', 'spectral')
    }
    functions['cholesky, ridge 0.01'] = cholesky
    stages = range(len(STAGES))
    return [on_stage('solver', functions, stage, solver_inputs) for stage in stages]


def models(name, configs, image_shape, **options) -> Case:
    """Return backbones by their configs, or by functions that build them."""
    variants = {
        key: backbone(**cfg) if isinstance(cfg, dict) else cfg
        for key, cfg in configs.items()
    }
    return Case(name, variants, (1, 3, *image_shape), **options)


SOFT = dict(type='SOFT', arch='tiny')
SOFTPP = dict(type='SOFTPlusPlus', arch='tiny')
SWIN = dict(type='SwinTransformer', arch='tiny')
CSWIN = dict(type='CSWinTransformer', arch='t24181')
NORMALIZED = dict(
    explicit=dict(SOFT, attn_norm=True, context=explicit_in_models),
    ours=dict(SOFT, attn_norm=True),
)
FUSED = 'PVTv2-B1 (mmdet, fused)'
TINY = {
    FUSED: dict(PVT_V2_B1, change=fuse_attention),
    'PVTv2-B1 (mmdet)': PVT_V2_B1,
    'Swin-T (mmdet)': SWIN_T,
    # all maps need gradients here
    'ResNet-50 (mmdet)': dict(RESNET_50, frozen_stages=-1),
    **{
        f'EfficientViT-{size.upper()} (timm)': partial(
            timm_maps, f'efficientvit_{size}'
        )
        for size in ('b1', 'b2', 'b3', 'l1')
    },
    'SOFT++-T': SOFTPP,
    'SOFT++-T, linear': dict(type='LinearSOFTPlusPlus', arch='tiny'),
    'Swin-T-ELFATT': dict(SWIN, attention='elfatt'),
}
# Where another library's form may be the faster one, and the sizes of ours that have a
# printed accuracy.
DETECTION_SIZE = {
    **TINY,
    'PVTv2-B1 (timm)': partial(timm_maps, 'pvt_v2_b1'),
    'Swin-T (timm)': timm_swin,
    'Swin-T (torchvision)': torchvision_swin,
    'CSWin-T-ELFATT': dict(CSWIN, attention='elfatt'),
    'MLLA-T': dict(type='MLLA', arch='tiny'),
    'VSSD-T': dict(type='VSSD', arch='tiny'),
    'RAVLT-S': dict(type='RAVLT', arch='small'),
    'MAViT-T': dict(type='MAViT', arch='tiny'),
    'H-ViT^3-T': dict(type='HViTTT', arch='tiny'),
}


def backbones() -> list[Case]:
    """Return backbones beside the official form, and beside others of their size."""
    return [
        *(
            models(name, configs, image_shape)
            for image_shape, tiny in (
                (DETECTION, DETECTION_SIZE),
                ((512, 512), TINY),
                (CLASSIFICATION, TINY),
            )
            for name, configs in (
                ('SOFT-Norm-Tiny', NORMALIZED),
                ('tiny backbones', tiny),
            )
        ),
        models('tiny backbones', TINY, (1333, 2000), steps=('forward',)),
    ]


def detectors() -> list[Case]:
    """Training steps and predictions of whole detectors."""
    cases = []
    for name, method in {'RetinaNet': 'retinanet', 'Mask R-CNN': 'mask-rcnn'}.items():
        config = f'soft/{method}_softpp-t_fpn_1x_coco.py'
        linear = f'soft/{method}_softpp-t-linear_fpn_1x_coco.py'
        variants = {
            FUSED: detector(config, PVT_V2_B1, fuse_attention),
            'PVTv2-B1 (mmdet)': detector(config, PVT_V2_B1),
            'Swin-T (mmdet)': detector(config, SWIN_T),
            'ResNet-50 (mmdet)': detector(config, RESNET_50),
            'EfficientViT-B1 (timm)': detector(config, timm_config('efficientvit_b1')),
            'EfficientViT-L1 (timm)': detector(config, timm_config('efficientvit_l1')),
            'SOFT++-T': detector(config),
            'SOFT++-T, linear': detector(linear),
        }
        inputs = partial(detection_batch, with_mask=name == 'Mask R-CNN')
        cases.append(Case(name, variants, (1, 3, *DETECTION), inputs=inputs))
    return cases


def attentions() -> list[Case]:
    """Return the ELFATT paper's comparison: its speed-ups are those that it claims at
    such sizes, in mixed precision on a GPU."""
    names = ('elfatt', 'local', 'efficient', 'agent', 'flatten')
    return [
        models(
            name,
            {
                'global': dict(cfg, attention='global'),
                'global, unfused': dict(cfg, attention='global', context=unfused),
                **{name: dict(cfg, attention=name) for name in names},
            },
            image_shape,
            steps=('forward',),
            paper={('elfatt', 'global'): (2, 3), ('elfatt', 'global, unfused'): (4, 7)},
        )
        for name, cfg in {'Swin-T': SWIN, 'CSWin-T': CSWIN}.items()
        for image_shape in ((800, 1280), (512, 2048))
    ]


def zoo() -> list[Case]:
    """Every attention in all blocks of Swin-T, for docs/attentions.md."""
    configs = {name: {**SWIN, **options} for name, options in ZOO.items()}
    return [
        models('Swin-T', configs, image_shape, steps=('forward',))
        for image_shape in (DETECTION, CLASSIFICATION)
    ]


def antioversmoothing() -> list[Case]:
    """Return the paper's models without and with each technique."""
    plain = {
        'DeiT-S': dict(type='VisionTransformer', arch='deit-small'),
        'Swin-S': dict(SWIN, arch='small'),
        'CaiT-S24': dict(type='CaiT', arch='s24', out_type='cls_token'),
    }
    return [
        models(
            name,
            dict(
                plain=cfg,
                AttnScale=dict(cfg, attn_scale=True),
                FeatScale=dict(cfg, feat_scale=True),
            ),
            CLASSIFICATION,
        )
        for name, cfg in plain.items()
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
        antioversmoothing,
        mmcv_ops,
    )
}
