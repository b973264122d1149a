"""UperNet with SOFT-Small (normalized) on ADE20K, 1x (160k iterations).

Paper: mIoU 46.2, 54M parameters.

    python tools/train.py configs/soft/upernet_soft-s_1x_ade20k-512x512.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/upernet.py',
    'mmseg::_base_/datasets/ade20k.py',
    '../_base_/schedules/ade20k_1x.py',
    '../_base_/seg_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(512, 512)),
    backbone=dict(
        type='mmlinattn.SOFT',
        arch='small',
        attn_norm=True,
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    decode_head=dict(in_channels=[64, 128, 320, 512], num_classes=150),
    auxiliary_head=dict(in_channels=320, num_classes=150),
)
