"""UperNet with DeiT-S12 + FeatScale on ADE20K, 3x (480k iterations).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/upernet_deit-s12-featscale_3x_ade20k-512x512.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_deit-s12-attnscale_3x_ade20k-512x512.py'

model = dict(backbone=dict(attn_scale=False, feat_scale=True))
