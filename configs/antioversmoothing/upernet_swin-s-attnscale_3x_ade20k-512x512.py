"""UperNet with Swin-S + AttnScale on ADE20K, 3x (480k iterations).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/upernet_swin-s-attnscale_3x_ade20k-512x512.py \
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
        type='mmlinattn.SwinTransformer',
        arch='small',
        drop_path_rate=0.3,
        attn_scale=True,
    ),
    decode_head=dict(in_channels=[96, 192, 384, 768], num_classes=150),
    auxiliary_head=dict(in_channels=384, num_classes=150),
)

optim_wrapper = dict(optimizer=dict(lr=6e-5))
