"""UperNet with SOFT++-Tiny on ADE20K, 3x (480k iterations).

No result of a paper is quoted for it.

    python tools/train.py configs/soft/upernet_softpp-t_3x_ade20k-512x512.py \
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
        type='mmlinattn.SOFTPlusPlus',
        arch='tiny',
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    decode_head=dict(in_channels=[64, 128, 256, 512], num_classes=150),
    auxiliary_head=dict(in_channels=256, num_classes=150),
)
