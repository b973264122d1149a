"""Semantic FPN with RAVLT-T on ADE20K, 80k iterations (the authors' 1x).
Authors' README: mIoU 47.9, 18M parameters, 136 GFLOPs.
    python tools/train.py configs/ravlt/fpn_ravlt-t_80k_ade20k-512x512.py
"""

_base_ = ['../_base_/models/fpn_ravlt-t.py', '../_base_/settings/ade20k-512x512_fpn-80k.py']
