"""RetinaNet with DeiT-S24 + FeatScale on COCO, 1x (12 epochs).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/retinanet_deit-s24-featscale_fpn_1x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './retinanet_deit-s12-featscale_fpn_1x_coco.py'

model = dict(backbone=dict(num_layers=24))
