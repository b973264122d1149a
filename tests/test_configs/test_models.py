"""The model of every config."""

import re

import pytest
import torch
from our_configs import ENTRIES, meta_model

pytestmark = pytest.mark.modern_full


def test_model(name):
    """The metafiles have our counts, which are compared with the papers'; necks and
    heads take the channels of the maps; techniques and attentions are the name's."""
    model = meta_model(name)
    count = sum(param.numel() for param in model.parameters())
    if name.startswith('dino'):  # wider in the modern stack's mmdet
        layer = model.decoder.ref_point_head.layers[0]
        count -= (layer.in_features - 512) * layer.out_features
    assert ENTRIES[name]['Metadata']['Parameters'] == count

    reader = getattr(model, 'neck', None) or getattr(model, 'decode_head', model)
    if isinstance(channels := getattr(reader, 'in_channels', None), list):
        assert tuple(channels) == model.backbone.feature_channels

    vectors = {
        key.rpartition('.')[2]
        for key, _ in model.backbone.named_parameters()
        if key.endswith(('omega', 'c_scale'))
    }
    of_attn = {'omega'} if '-attnscale' in name else set()
    of_feat = {'dc_scale', 'hc_scale'} if '-featscale' in name else set()
    assert vectors == of_attn | of_feat

    pattern = 'soft.*-(softmax|linformer|performer|nystrom)_in1k'
    if attention := re.fullmatch(pattern, name):
        attns = [block.attn for x in model.backbone.stages[:3] for block in x.blocks]
        kinds = {type(attn).__name__.lower() for attn in attns}
        assert kinds == {f'{attention[1]}attention'}


@pytest.mark.parametrize(
    'config_name, block, key, expected',
    [
        # detectors and segmentors of Swin have more agents than classifiers
        ('mask-rcnn_swin-t-agent_fpn_1x_coco', 0, 'agent_side', [9, 12, 14]),
        ('upernet_swin-t-agent_1x_ade20k-512x512', 0, 'agent_side', [9, 12, 14]),
        ('swin-t-agent_in1k', 0, 'agent_side', [3, 4, 7]),
        ('mask-rcnn_cswin-t-agent_fpn_1x_coco', 0, 'agent_side', [3, 4]),
        # the second block of a stage: in the third one softmax attention comes first
        ('cswin-t-elfatt_in1k', 1, 'block_size', [49, 49, 196]),
        ('upernet_cswin-t-elfatt_1x_ade20k-512x512', 1, 'block_size', [196] * 3),
        ('swin-b-elfatt_finetune_in1k-384px', 1, 'block_size', [576] * 3),
        # larger images: windows, stripes, stored biases and positions
        ('swin-b-local_finetune_in1k-384px', 0, 'window_size', [12] * 4),
        ('cswin-b-local_finetune_in1k-384px', 0, 'stripe_width', [1, 2, 12]),
        ('swin-b-agent_finetune_in1k-384px', 0, 'map_side', [96, 48]),
        ('cswin-b-flatten_finetune_in1k-384px', 0, 'map_side', [96, 48]),
    ],
)
def test_sides(config_name, block, key, expected):
    """Sides of windows, stripes, blocks, agents and stored maps, stage by stage."""

    def side_of(attn):
        if key != 'map_side':
            return getattr(attn, key)
        biased = hasattr(attn, 'agent_bias')
        return attn.agent_bias.rows.size(2) if biased else attn.pos_embed.hw_shape[0]

    stages = meta_model(config_name).backbone.stages[: len(expected)]
    assert [side_of(stage.blocks[block].attn) for stage in stages] == expected


@pytest.mark.parametrize('backbone', ['deit-s12-featscale_sfp', 'swin-s-featscale_fpn'])
@pytest.mark.parametrize('method', ['retinanet', 'mask-rcnn'])
def test_levels_have_the_strides_of_anchors(method, backbone):
    model = meta_model(f'{method}_{backbone}_1x_coco')
    head = model.bbox_head if method == 'retinanet' else model.rpn_head
    levels = model.extract_feat(torch.empty(1, 3, 256, 384, device='meta'))
    assert [tuple(level.shape[2:]) for level in levels] == [
        (256 // stride, 384 // stride) for stride, _ in head.prior_generator.strides
    ]
