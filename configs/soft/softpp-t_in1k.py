"""SOFT++-Tiny on ImageNet-1k, 300 epochs at 224 x 224.

Paper: top-1 80.9, 13M parameters.

    python tools/train.py configs/soft/softpp-t_in1k.py
"""

_base_ = [
    '../_base_/models/image_classifier.py',
    '../_base_/datasets/in1k_224.py',
    '../_base_/schedules/in1k_300e.py',
    '../_base_/cls_runtime.py',
]

model = dict(
    backbone=dict(
        type='mmlinattn.SOFTPlusPlus',
        arch='tiny',
        out_type='cls_token',
        drop_path_rate=0.1,
    ),
    head=dict(in_channels=512),
)
