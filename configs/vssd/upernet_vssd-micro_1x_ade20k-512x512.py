"""UperNet with VSSD-Micro on ADE20K, 1x (160k iterations).
Authors' README: mIoU 45.6 (46.0 on several scales), 42M parameters, 893 GFLOPs.
    python tools/train.py configs/vssd/upernet_vssd-micro_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_vssd-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
pretrained = 'https://huggingface.co/YuhengSSS/VSSD/resolve/main/vssd_micro_best.pth#/vssd_micro_best.pth'
model = dict(
    backbone=dict(arch='micro', drop_path_rate=0.1),
    decode_head=dict(in_channels=[48, 96, 192, 384]),
    auxiliary_head=dict(in_channels=192),
)
