"""RetinaNet with DeiT-S12 + AttnScale on Cityscapes, 1x (8 epochs of 8 repetitions).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/retinanet_deit-s12-attnscale_fpn_1x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/retinanet_fpn.py',
    'mmdet::_base_/datasets/cityscapes_detection.py',
    '../_base_/schedules/cityscapes-det_1x.py',
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
        scales=(2, 1, 0.5),
        num_outs=5,
    ),
    bbox_head=dict(num_classes=8),
)

optim_wrapper = dict(optimizer=dict(weight_decay=0.05))
