"""UperNet with SOFT++-Tiny on Cityscapes, 3x (120k iterations).

No result of a paper is quoted for it.

    python tools/train.py configs/soft/upernet_softpp-t_3x_cityscapes-768x768.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = [
    '../_base_/models/upernet.py',
    'mmseg::_base_/datasets/cityscapes_768x768.py',
    '../_base_/schedules/cityscapes-seg_3x.py',
    '../_base_/seg_runtime.py',
]

model = dict(
    data_preprocessor=dict(size=(768, 768)),
    backbone=dict(
        type='mmlinattn.SOFTPlusPlus',
        arch='tiny',
        drop_path_rate=0.1,
        norm_cfg=dict(type='SyncBN', requires_grad=True),
    ),
    decode_head=dict(in_channels=[64, 128, 256, 512]),
    auxiliary_head=dict(in_channels=256),
    test_cfg=dict(mode='slide', crop_size=(768, 768), stride=(512, 512)),
)
