"""UperNet with H-ViT^3-B on ADE20K, 1x (160k iterations).
Authors' README: mIoU 51.7, 124M parameters, 1195 GFLOPs.
    python tools/train.py configs/vittt/upernet_hvittt-b_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_hvittt-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/1d0d7fb840254275b29d/?dl=1#/h_vittt_b.pth'
model = dict(
    backbone=dict(arch='base', drop_path_rate=0.5),
    decode_head=dict(in_channels=[96, 192, 448, 640]),
    auxiliary_head=dict(in_channels=448),
)
