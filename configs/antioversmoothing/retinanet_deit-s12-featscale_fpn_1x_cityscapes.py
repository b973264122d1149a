"""RetinaNet with DeiT-S12 + FeatScale on Cityscapes, 1x (8 epochs of 8 repetitions).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/retinanet_deit-s12-featscale_fpn_1x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './retinanet_deit-s12-attnscale_fpn_1x_cityscapes.py'

model = dict(backbone=dict(attn_scale=False, feat_scale=True))
