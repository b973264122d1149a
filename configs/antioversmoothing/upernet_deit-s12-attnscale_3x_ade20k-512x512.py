"""UperNet with DeiT-S12 + AttnScale on ADE20K, 3x (480k iterations).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/upernet_deit-s12-attnscale_3x_ade20k-512x512.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/upernet.py',
    'mmseg::_base_/datasets/ade20k.py',
    '../_base_/schedules/ade20k_3x.py',
    '../_base_/seg_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(512, 512)),
    backbone=dict(
        type='mmlinattn.VisionTransformer',
        arch='deit-small',
        num_layers=12,
        out_indices=(2, 5, 8, 11),
        drop_path_rate=0.1,
        attn_scale=True,
    ),
    neck=dict(
        type='MultiLevelNeck',
        in_channels=[384, 384, 384, 384],
        out_channels=384,
        scales=[4, 2, 1, 0.5],
    ),
    decode_head=dict(in_channels=[384, 384, 384, 384], num_classes=150),
    auxiliary_head=dict(in_channels=384, num_classes=150),
)

optim_wrapper = dict(optimizer=dict(lr=6e-5))
