"""Semantic FPN with MAViT-T on ADE20K, 80k iterations (the authors' 1x).
python tools/train.py configs/mavit/fpn_mavit-t_80k_ade20k-512x512.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/fpn_mavit-t.py', '../_base_/settings/ade20k-512x512_fpn-80k.py']
