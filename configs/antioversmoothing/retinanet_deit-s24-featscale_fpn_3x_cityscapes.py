"""RetinaNet with DeiT-S24 + FeatScale on Cityscapes, 3x (24 epochs of 8 repetitions).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/retinanet_deit-s24-featscale_fpn_3x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './retinanet_deit-s12-featscale_fpn_3x_cityscapes.py'

model = dict(backbone=dict(num_layers=24))
