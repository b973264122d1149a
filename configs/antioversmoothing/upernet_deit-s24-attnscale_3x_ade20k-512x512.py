"""UperNet with DeiT-S24 + AttnScale on ADE20K, 3x (480k iterations).
    python tools/train.py configs/antioversmoothing/upernet_deit-s24-attnscale_3x_ade20k-512x512.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_deit-s24.py', '../_base_/settings/ade20k-512x512_swin-3x.py']
model = dict(backbone=dict(attn_scale=True))
