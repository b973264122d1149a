"""Semantic FPN with RAVLT-B on ADE20K, 80k iterations (the authors' 1x).
Authors' README: mIoU 51.9, 51M parameters, 292 GFLOPs.
    python tools/train.py configs/ravlt/fpn_ravlt-b_80k_ade20k-512x512.py
"""

_base_ = ['../_base_/models/fpn_ravlt-t.py', '../_base_/settings/ade20k-512x512_fpn-80k.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_B.pth#/RAVLT_B.pth'
model = dict(backbone=dict(arch='base', drop_path_rate=0.4), neck=dict(in_channels=[96, 192, 384, 512]))
