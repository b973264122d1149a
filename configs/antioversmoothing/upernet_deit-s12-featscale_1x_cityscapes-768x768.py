"""UperNet with DeiT-S12 + FeatScale on Cityscapes, 1x (40k iterations).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/upernet_deit-s12-featscale_1x_cityscapes-768x768.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_deit-s12-attnscale_1x_cityscapes-768x768.py'

model = dict(backbone=dict(attn_scale=False, feat_scale=True))
