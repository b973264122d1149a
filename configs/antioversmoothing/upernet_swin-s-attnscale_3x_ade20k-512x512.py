"""UperNet with Swin-S + AttnScale on ADE20K, 3x (480k iterations).
python tools/train.py configs/antioversmoothing/upernet_swin-s-attnscale_3x_ade20k-512x512.py
"""

_base_ = ['../_base_/models/upernet_swin-s.py', '../_base_/settings/ade20k-512x512_swin-3x.py']
model = dict(backbone=dict(attn_scale=True))
