"""Semantic FPN with MAViT-B on ADE20K, 80k iterations (the authors' 1x).
python tools/train.py configs/mavit/fpn_mavit-b_80k_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/fpn_mavit-t.py', '../_base_/settings/ade20k-512x512_fpn-80k.py']
model = dict(backbone=dict(arch='base', drop_path_rate=0.4), neck=dict(in_channels=[96, 192, 384, 512]))
