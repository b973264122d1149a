"""The model of every config."""

import re

import pytest
import torch

pytestmark = [pytest.mark.modern, pytest.mark.modern_full]

# those for Cityscapes differ from others in the number of classes
QUICK = r'^(?!.*cityscapes)'

# Million parameters of whole models: what ours have, and what the papers print.
# They count COCO's, ADE20K's and ImageNet's classes, and cut or round.
PARAMS = {
    'retinanet': {
        'soft-t': (22.8, 23),
        'soft-s': (33.8, 34),
        'soft-m': (55.5, 55),
        'soft-l': (74.4, 74),
        'softpp-t': (22.8, 23),
        'softpp-s': (38.5, 38),
        'softpp-m': (59.7, 59),
        'softpp-l': (97.9, 98),
    },
    'mask-rcnn': {
        'soft-t': (32.7, 33),
        'soft-s': (43.8, 44),
        'soft-m': (65.5, 65),
        'soft-l': (84.4, 84),
        'softpp-t': (32.7, 32),
        'softpp-s': (47.9, 48),
        'softpp-m': (69.1, 69),
        'softpp-l': (106.7, 106),
        'swin-t-elfatt': (49.8, 50),
        'cswin-t-elfatt': (40.0, 40),
    },
    'cascade-mask-rcnn': {'soft-s': (76.7, 77)},
    'atss': {'soft-s': (31.7, 32)},
    'gfl': {'soft-s': (31.9, 32)},
    'sparse-rcnn': {'soft-s': (105.7, 106)},
    'upernet': {
        'soft-s': (54.1, 54),
        'soft-m': (75.7, 76),
        'softpp-s': (60.0, 60),
        'softpp-m': (81.2, 81),
        'softpp-l': (120.8, 121),
        'swin-t-elfatt': (61.9, 62),
        'cswin-t-elfatt': (50.2, 50),
    },
    'in1k': {
        'soft-t': (13.07, 13),
        'soft-s': (24.11, 24),
        'soft-m': (45.81, 45),
        'soft-l': (64.70, 64),
        'soft-h': (87.11, 87),
        'soft-t-norm': (13.07, 13),
        'soft-h-norm': (87.11, 87),
        'softpp-t': (13.04, 13),
        # the paper's classifiers are counted without stage 4's key projection
        'softpp-s': (28.38, 27),
        'softpp-m': (49.58, 48),
        'softpp-l': (87.29, 85),
        'swin-t-elfatt': (30.25, 30),
        'swin-b-elfatt': (91.28, 91),
        'cswin-t-elfatt': (20.39, 20),
        'cswin-b-elfatt': (73.05, 73),
        'swin-t-global': (28.31, 28),
        'swin-t-efficient': (28.31, 28),
        'cswin-t-global': (20.39, 20),
        'cswin-t-local': (20.39, 20),
    },
}

# Classifiers of the AttnScale and FeatScale paper: million parameters without
# either, as printed, and what each of them adds.
SCALED = {
    'deit-s12': (22.051, dict(attnscale=72, featscale=9216)),
    'deit-s24': (43.344, dict(attnscale=144, featscale=18432)),
    'cait-s24': (46.916, dict(attnscale=192, featscale=18432)),
    'cait-xxs24': (11.956, dict(attnscale=96, featscale=9216)),
    'swin-s': (49.606, dict(attnscale=282, featscale=18048)),
}


def test_parameters(name, backbone_id, downstream, entry, meta_model):
    count = sum(param.numel() for param in meta_model(name).parameters())
    if name.startswith('dino'):  # wider in the modern stack's mmdet
        layer = meta_model(name).decoder.ref_point_head.layers[0]
        count -= (layer.in_features - 512) * layer.out_features
    assert entry['Metadata']['Parameters'] == count
    method = name.partition('_')[0] if downstream else 'in1k'
    if 'cityscapes' in name or backbone_id not in PARAMS.get(method, {}):
        return
    ours, printed = PARAMS[method][backbone_id]
    digit = 0.01 if method == 'in1k' else 0.1
    assert count / 1e6 == pytest.approx(ours, abs=digit / 2)
    uncounted = method == 'in1k' and re.fullmatch('softpp-[sml]', backbone_id)
    assert count / 1e6 == pytest.approx(printed, abs=2.3 if uncounted else 1)


def test_parameters_of_scaling_vectors(
    name, backbone_id, downstream, entry, meta_model
):
    backbone, _, technique = backbone_id.rpartition('-')
    if downstream or backbone not in SCALED:
        return
    count = sum(param.numel() for param in meta_model(name).parameters())
    millions, added = SCALED[backbone]
    assert round((count - added[technique]) / 1e6, 3) == millions
    top1 = entry.get('Results')
    # the paper has CaiT-XXS24 by fine-tuning only
    assert bool(top1) == (backbone != 'cait-xxs24' or '_finetune_' in name)


def test_downstream_models(name, backbone_id, downstream, config):
    cfg = config(name)
    assert cfg.load_from is None
    hook = cfg.default_hooks.pretrained
    assert hook.type == 'mmlinattn.PretrainedBackboneHook'
    # training on ImageNet from scratch is what its recipes mean
    assert hook.get('warn', True) == (downstream or '_finetune_' in name)
    if not downstream:
        return
    if backbone_id.startswith('soft'):
        assert cfg.model.backbone.norm_cfg.type == 'SyncBN'
    assert cfg.model.get('pretrained') is None


def test_techniques(name, backbone_id, meta_model):
    technique = backbone_id.rpartition('-')[2]
    vectors = {
        key.rpartition('.')[2]
        for key, _ in meta_model(name).backbone.named_parameters()
        if key.endswith(('omega', 'c_scale'))
    }
    expected = dict(attnscale={'omega'}, featscale={'dc_scale', 'hc_scale'})
    assert vectors == expected.get(technique, set())


ATTENTIONS = {
    'softmax': 'SoftmaxAttention',
    'linformer': 'LinformerAttention',
    'performer': 'PerformerAttention',
    'nystrom': 'NystromAttention',
}


def test_attentions(name, backbone_id, config, meta_model):
    """A name says which attention it is, a whole preset or one in SOFT-Tiny."""
    kind, _, attention = backbone_id.rpartition('-')
    if kind in ('soft-t', 'softpp-t') and attention in ATTENTIONS:
        stages = meta_model(name).backbone.stages
        found = [[type(block.attn).__name__ for block in x.blocks] for x in stages]
        depths = (1, 2, 3) if kind == 'soft-t' else (2, 2, 5)
        expected = [[ATTENTIONS[attention]] * n for n in depths]
        assert found == [*expected, ['SoftmaxAttention'] * 2]
    elif re.fullmatch('c?swin-[tb]', kind) and attention != 'sharedqk':
        backbone = config(name).model.backbone
        assert backbone.type == (
            'mmlinattn.CSWinTransformer'
            if kind.startswith('cswin')
            else 'mmlinattn.SwinTransformer'
        )
        assert backbone.attention == attention


def test_as_many_keys_as_landmarks_of_soft(meta_model):
    stages = meta_model('soft-t-linformer_in1k').backbone.stages
    ratios = [stage.blocks[0].attn.sr_ratio for stage in stages[:3]]
    assert [(side // r) ** 2 for side, r in zip((56, 28, 14), ratios)] == [49] * 3
    stages = meta_model('soft-t-nystrom_in1k').backbone.stages
    assert [stage.blocks[0].attn.landmark_side ** 2 for stage in stages[:3]] == [49] * 3


@pytest.mark.parametrize(
    'config_name, blocks',
    [
        ('cswin-t-elfatt_in1k', [49, 49, 196]),
        ('swin-t-elfatt_in1k', [196] * 3),
        ('upernet_cswin-t-elfatt_1x_ade20k-512x512', [196] * 3),
        ('swin-b-elfatt_finetune_in1k-384px', [576] * 3),
        ('cswin-b-elfatt_finetune_in1k-384px', [576] * 3),
    ],
)
def test_blocks_of_elfatt(config_name, blocks, meta_model):
    # the second block of a stage: in the third one softmax attention comes first
    stages = meta_model(config_name).backbone.stages[:3]
    found = [stage.blocks[1].attn for stage in stages]
    assert [attn.block_size for attn in found] == blocks


@pytest.mark.parametrize('family', ['swin', 'cswin'])
def test_base_models_for_384(family, config, meta_model):
    """Windows and stripes, stored biases and positions are made for larger images."""
    found = {}
    for attention in ('local', 'agent', 'flatten'):
        model = meta_model(f'{family}-b-{attention}_finetune_in1k-384px').backbone
        found[attention] = [stage.blocks[0].attn for stage in model.stages]
    for attention, attn in found.items():
        third = [stage for stage in attn if hasattr(stage, 'window_size')]
        assert all(stage.window_size == 12 for stage in third), attention
        for stripes in (stage for stage in attn if hasattr(stage, 'stripe_width')):
            assert stripes.stripe_width in (1, 2, 12)
    biases = [attn.agent_bias.rows.size(2) for attn in found['agent'][:2]]
    tables = [attn.pos_embed.hw_shape for attn in found['flatten'][:2]]
    assert biases == [96, 48] and tables == [(96, 96), (48, 48)]


def test_agents(name, meta_model):
    """Swin's detectors and segmentors have more agents than its classifiers."""
    if '-agent_' not in name:
        return
    attns = [stage.blocks[0].attn for stage in meta_model(name).backbone.stages]
    sides = [attn.agent_side for attn in attns if hasattr(attn, 'agent_side')]
    if name.split('_')[1].startswith('swin'):
        assert sides == [9, 12, 14]
    else:
        assert sides == [3, 4, 7][: len(sides)] and len(sides) >= 2


def test_landmarks_of_the_ablation(meta_model):
    for number in (36, 64, 81):
        stages = meta_model(f'softpp-t-m{number}_in1k').backbone.stages[:3]
        for stage, side in zip(stages, (56, 28, 14)):
            sampler = stage.blocks[0].attn.sampler
            assert sampler.num_landmarks((side, side)) == number


def test_auxiliary_head_of_deit(name, config):
    if name.startswith('upernet_deit'):
        assert config(name).model.auxiliary_head.in_index == 3


def test_pyramid_of_detectors(name, downstream, meta_model):
    classes = dict(fpn='FPN', sfp='SimpleFeaturePyramid')
    pyramid = name.split('_')[2] if downstream else None
    if pyramid not in classes:
        return
    assert type(meta_model(name).neck).__name__ == classes[pyramid]


def test_maps_of_retinanet(name, meta_model):
    if not name.startswith('retinanet_') or '_sfp_' in name:
        return
    # all of them have C3 to C5; P6 is a convolution of C5, P7 one of P6
    model = meta_model(name)
    channels = model.backbone.feature_channels[-1]
    assert tuple(model.backbone.out_indices) == (1, 2, 3)
    assert model.neck.start_level == 0
    assert model.neck.fpn_convs[3].conv.in_channels == channels


@pytest.mark.parametrize(
    'backbone', ['deit-s12-featscale_sfp', 'swin-s-featscale_fpn', 'cswin-t-elfatt_fpn']
)
@pytest.mark.parametrize('method', ['retinanet', 'mask-rcnn'])
def test_levels_have_the_strides_of_anchors(method, backbone, meta_model):
    model = meta_model(f'{method}_{backbone}_1x_coco')
    head = model.bbox_head if method == 'retinanet' else model.rpn_head
    levels = model.extract_feat(torch.empty(1, 3, 256, 384, device='meta'))
    assert [tuple(level.shape[2:]) for level in levels] == [
        (256 // stride, 384 // stride) for stride, _ in head.prior_generator.strides
    ]


def test_segmentor_levels(meta_model):
    model = meta_model('upernet_deit-s24-featscale_3x_ade20k-512x512')
    levels = model.extract_feat(torch.empty(1, 3, 256, 384, device='meta'))
    assert [tuple(level.shape[1:]) for level in levels] == [
        (384, 64, 96),
        (384, 32, 48),
        (384, 16, 24),
        (384, 8, 12),
    ]
