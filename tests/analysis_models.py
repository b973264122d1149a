"""Miniatures for the tests of the analysis tools."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from mmlinattn.commands.compare_predictions import Subject

ARCH = 'dict(embed_dims=[8, 16], depths=[1, 2], num_heads=[2, 2])'
SOFT = (
    f"dict(type='mmlinattn.SOFTPlusPlus', arch={ARCH}, sampling_ratios=(4, 2), "
    'kernel_sizes=(3, 3)'
)
# quick to export
QUICK = (
    f"dict(type='mmlinattn.PyramidTransformer', arch={ARCH}, "
    "attention=dict(type='EfficientAttention')"
)
DATA = """
test_dataloader = dict(
    dataset=dict(
        type='%s',
        metainfo=dict(%s),
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='Resize', scale=(96, 64), keep_ratio=False),
            dict(type='LoadAnnotations'),
            dict(type='%s'),
        ],
    )
)
"""
PALETTE = '[[200, 0, 0], [0, 200, 0], [0, 0, 200], [90, 90, 90]]'
IMAGENET = DATA % ('ImageNet', '', 'PackInputs')
ABCD = DATA % (
    'BaseSegDataset',
    f"classes=list('abcd'), palette={PALETTE}",
    'PackSegInputs',
)
COCO = DATA % ('CocoDataset', "classes=('x', 'y', 'z')", 'PackDetInputs')
CLASSIFIER = """
default_scope = 'mmpretrain'
model = dict(
    type='ImageClassifier',
    backbone={backbone}),
    head=dict(type='LinearClsHead', num_classes=3, in_channels=16),
)
data_preprocessor = dict(num_classes=3, mean=[120] * 3, std=[60] * 3, to_rgb=True)
"""
SEGMENTOR = """
default_scope = 'mmseg'
model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(
        type='SegDataPreProcessor', mean=[120] * 3, std=[60] * 3, bgr_to_rgb=True,
        size_divisor=32,
    ),
    backbone={backbone}),
    decode_head=dict(
        type='FCNHead', in_channels=16, in_index=1, channels=8, num_convs=1,
        num_classes=4, concat_input=False, norm_cfg=dict(type='BN'),
    ),
    test_cfg=dict(mode='whole'),
)
"""
RETINANET = """
_base_ = 'mmdet::_base_/models/retinanet_r50_fpn.py'
default_scope = 'mmdet'
model = dict(
    backbone=dict(_delete_=True, **{backbone})),
    neck=dict(
        in_channels=[8, 16], out_channels=8, num_outs=2, start_level=0,
        add_extra_convs=False,
    ),
    bbox_head=dict(
        num_classes=3, in_channels=8, feat_channels=32, stacked_convs=1,
        anchor_generator=dict(scales_per_octave=1, ratios=[1.0], strides=[4, 8]),
    ),
    test_cfg=dict(nms_pre=50, score_thr=0.0, max_per_img=5),
)
"""
TWO_STAGE = """
_base_ = 'mmdet::_base_/models/faster-rcnn_r50_fpn.py'
default_scope = 'mmdet'
model = dict(
    backbone=dict(
        _delete_=True, **{backbone})
    ),
    neck=dict(in_channels=[8, 16], out_channels=8, num_outs=3),
    rpn_head=dict(
        in_channels=8, feat_channels=8,
        anchor_generator=dict(strides=[4, 8, 16], ratios=[1.0]),
    ),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=8, featmap_strides=[4, 8]),
        bbox_head=dict(in_channels=8, fc_out_channels=8, num_classes=3),
    ),
    test_cfg=dict(rpn=dict(nms_pre=20, max_per_img=6)),
)
"""
MASKS = """
model['roi_head'].update(
    mask_roi_extractor=dict(out_channels=8, featmap_strides=[4, 8]),
    mask_head=dict(
        in_channels=8, conv_out_channels=8, num_convs=1, num_classes=3
    ),
)
"""
ATSS = RETINANET.replace('_base_/models/retinanet_r50_fpn', 'atss/atss_r50_fpn_1x_coco')
KINDS = dict(
    classifier=CLASSIFIER + IMAGENET,
    segmentor=SEGMENTOR + ABCD,
    retinanet=RETINANET + COCO,
    atss=ATSS + COCO,
    faster=TWO_STAGE + COCO,
    mask=TWO_STAGE.replace('faster-', 'mask-') + MASKS + COCO,
)


def write_config(folder, name, kind='classifier', backbone=SOFT):
    """Writes a config, and returns its path."""
    options = ", out_type='avg_featmap'" if kind == 'classifier' else ''
    path = Path(folder, f'{name}.py')
    path.write_text(KINDS[kind].replace('{backbone}', backbone + options))
    return str(path)


def write_image(path, height=60, width=90):
    """Writes an image of noise and a square."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(0).integers(0, 255, (height, width, 3))
    pixels[10:30, 20:50] = (220, 30, 30)
    Image.fromarray(pixels.astype(np.uint8)).save(path)
    return str(path)


def save_weights(config, path, whole=True, **more):
    """Writes a checkpoint of a config, of random weights, and returns its path."""
    model = Subject(config, 'none').model
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    state = model.state_dict()
    if not whole:
        state = {key: x for key, x in state.items() if key.startswith('backbone.')}
    torch.save(dict(state_dict=state, **more), path)
    return str(path)
