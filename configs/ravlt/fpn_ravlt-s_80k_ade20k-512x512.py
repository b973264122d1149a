"""Semantic FPN with RAVLT-S on ADE20K, 80k iterations (the authors' 1x).
Authors' README: mIoU 49.5, 28M parameters, 180 GFLOPs.
    python tools/train.py configs/ravlt/fpn_ravlt-s_80k_ade20k-512x512.py
"""

_base_ = ['../_base_/models/fpn_ravlt-t.py', '../_base_/settings/ade20k-512x512_fpn-80k.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_S.pth#/RAVLT_S.pth'
model = dict(backbone=dict(arch='small', drop_path_rate=0.15), neck=dict(in_channels=[64, 128, 320, 512]))
