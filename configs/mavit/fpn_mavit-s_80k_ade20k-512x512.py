"""Semantic FPN with MAViT-S on ADE20K, 80k iterations (the authors' 1x).
python tools/train.py configs/mavit/fpn_mavit-s_80k_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/fpn_mavit-t.py', '../_base_/settings/ade20k-512x512_fpn-80k.py']
model = dict(backbone=dict(arch='small', drop_path_rate=0.15), neck=dict(in_channels=[64, 128, 320, 512]))
