"""Mask R-CNN with DeiT-S12 + AttnScale on COCO, 1x (12 epochs).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/mask-rcnn_deit-s12-attnscale_fpn_1x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/mask-rcnn_fpn.py',
    'mmdet::_base_/datasets/coco_instance.py',
    '../_base_/schedules/coco_1x.py',
    '../_base_/det_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.VisionTransformer',
        arch='deit-small',
        num_layers=12,
        drop_path_rate=0.1,
        attn_scale=True,
    ),
    neck=dict(
        _delete_=True,
        type='mmlinattn.SimpleFeaturePyramid',
        in_channels=384,
        num_outs=5,
    ),
)

optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
