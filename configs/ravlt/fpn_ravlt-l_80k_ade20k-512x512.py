"""Semantic FPN with RAVLT-L on ADE20K, 80k iterations (the authors' 1x).
Authors' README: mIoU 52.6, 98M parameters, 424 GFLOPs.
    python tools/train.py configs/ravlt/fpn_ravlt-l_80k_ade20k-512x512.py
"""

_base_ = ['../_base_/models/fpn_ravlt-t.py', '../_base_/settings/ade20k-512x512_fpn-80k.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_L.pth#/RAVLT_L.pth'
model = dict(backbone=dict(arch='large', drop_path_rate=0.55), neck=dict(in_channels=[96, 192, 448, 640]))
