"""UperNet with H-ViT^3-S on ADE20K, 1x (160k iterations).
Authors' README: mIoU 50.2, 83.6M parameters, 1026 GFLOPs.
    python tools/train.py configs/vittt/upernet_hvittt-s_1x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_hvittt-t.py', '../_base_/settings/ade20k-512x512_swin-1x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/3eeab8621a7f43929a87/?dl=1#/h_vittt_s.pth'
model = dict(backbone=dict(arch='small', drop_path_rate=0.4))
