"""UperNet with Swin-S + FeatScale on ADE20K, 3x (480k iterations).
python tools/train.py configs/antioversmoothing/upernet_swin-s-featscale_3x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_swin-s.py', '../_base_/settings/ade20k-512x512_swin-3x.py']
model = dict(backbone=dict(feat_scale=True))
