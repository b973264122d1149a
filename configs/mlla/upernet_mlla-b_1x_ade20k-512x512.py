"""UperNet with MLLA-B on ADE20K, 1x (160k iterations).
Authors' README: mIoU 51.9 (52.5 on several scales), 128M parameters, 1183 GFLOPs.
    python tools/train.py configs/mlla/upernet_mlla-b_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_mlla-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/91c85c5a1061496d8796/?dl=1#/mlla_b.pth'
model = dict(
    backbone=dict(arch='base', drop_path_rate=0.5),
    decode_head=dict(in_channels=[96, 192, 384, 768]),
    auxiliary_head=dict(in_channels=384),
)
