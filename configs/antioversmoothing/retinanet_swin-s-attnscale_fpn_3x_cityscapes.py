"""RetinaNet with Swin-S + AttnScale on Cityscapes, 3x (24 epochs of 8 repetitions).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/retinanet_swin-s-attnscale_fpn_3x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/retinanet_fpn.py',
    'mmdet::_base_/datasets/cityscapes_detection.py',
    '../_base_/schedules/cityscapes-det_3x.py',
    '../_base_/det_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.SwinTransformer',
        arch='small',
        out_indices=(1, 2, 3),
        drop_path_rate=0.2,
        attn_scale=True,
    ),
    neck=dict(in_channels=[192, 384, 768], start_level=0),
    bbox_head=dict(num_classes=8),
)

optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
