"""UperNet with Swin-S + FeatScale on Cityscapes, 3x (120k iterations).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/upernet_swin-s-featscale_3x_cityscapes-768x768.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_swin-s-attnscale_3x_cityscapes-768x768.py'

model = dict(backbone=dict(attn_scale=False, feat_scale=True))
