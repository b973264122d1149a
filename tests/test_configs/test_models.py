"""The model of every config."""

import re

import pytest
import torch

pytestmark = [pytest.mark.modern, pytest.mark.modern_full]


def test_parameters(name, entry, meta_model):
    """The metafiles have our counts, which are compared with the papers'."""
    count = sum(param.numel() for param in meta_model(name).parameters())
    if name.startswith('dino'):  # wider in the modern stack's mmdet
        layer = meta_model(name).decoder.ref_point_head.layers[0]
        count -= (layer.in_features - 512) * layer.out_features
    assert entry['Metadata']['Parameters'] == count


def test_channels(name, meta_model):
    """FPN and UperNet take the channels of the maps that they get."""
    model = meta_model(name)
    reader = getattr(model, 'neck', None) or getattr(model, 'decode_head', model)
    if isinstance(channels := getattr(reader, 'in_channels', None), list):
        assert tuple(channels) == model.backbone.feature_channels


def test_start(loaded):
    """Backbones start from `pretrained`, and from nothing else."""
    for name, cfg, _ in loaded:
        assert cfg.load_from is None and cfg.model.get('pretrained') is None, name
        hook = cfg.default_hooks.pretrained
        assert hook.type == 'mmlinattn.PretrainedBackboneHook', name
        # recipes of ImageNet train from scratch
        scratch = '_in1k' in name and '_finetune_' not in name
        assert hook.get('warn', True) != scratch, name


def test_techniques(name, meta_model):
    vectors = {
        key.rpartition('.')[2]
        for key, _ in meta_model(name).backbone.named_parameters()
        if key.endswith(('omega', 'c_scale'))
    }
    of_attn = {'omega'} if '-attnscale' in name else set()
    of_feat = {'dc_scale', 'hc_scale'} if '-featscale' in name else set()
    assert vectors == of_attn | of_feat


def test_other_attentions_in_the_pyramid(name, meta_model):
    attention = re.fullmatch('soft.*-(softmax|linformer|performer|nystrom)_in1k', name)
    if attention:
        stages = meta_model(name).backbone.stages[:3]
        found = {
            type(block.attn).__name__ for stage in stages for block in stage.blocks
        }
        assert [x.lower() for x in found] == [f'{attention[1]}attention']


def test_agents(name, meta_model):
    """Swin's detectors and segmentors have more agents than its classifiers."""
    if '-agent_' not in name:
        return
    attns = [stage.blocks[0].attn for stage in meta_model(name).backbone.stages]
    sides = [attn.agent_side for attn in attns if hasattr(attn, 'agent_side')]
    if name.split('_')[1].startswith('swin'):
        assert sides == [9, 12, 14][: len(sides)] and len(sides) >= 2
    else:
        assert sides == [3, 4, 7][: len(sides)] and len(sides) >= 2


@pytest.mark.parametrize(
    'config_name, blocks',
    [
        ('cswin-t-elfatt_in1k', [49, 49, 196]),
        ('upernet_cswin-t-elfatt_1x_ade20k-512x512', [196] * 3),
        ('swin-b-elfatt_finetune_in1k-384px', [576] * 3),
    ],
)
def test_blocks_of_elfatt(config_name, blocks, meta_model):
    # the second block of a stage: in the third one softmax attention comes first
    stages = meta_model(config_name).backbone.stages[:3]
    assert [stage.blocks[1].attn.block_size for stage in stages] == blocks


@pytest.mark.parametrize('family', ['swin', 'cswin'])
def test_base_models_for_384(family, meta_model):
    """Windows and stripes, stored biases and positions are made for larger images."""
    found = {}
    for attention in ('local', 'agent', 'flatten'):
        model = meta_model(f'{family}-b-{attention}_finetune_in1k-384px').backbone
        found[attention] = [stage.blocks[0].attn for stage in model.stages]
    for attn in (x for stages in found.values() for x in stages):
        assert getattr(attn, 'window_size', 12) == 12
        assert getattr(attn, 'stripe_width', 12) in (1, 2, 12)
    biases = [attn.agent_bias.rows.size(2) for attn in found['agent'][:2]]
    tables = [attn.pos_embed.hw_shape for attn in found['flatten'][:2]]
    assert biases == [96, 48] and tables == [(96, 96), (48, 48)]


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
