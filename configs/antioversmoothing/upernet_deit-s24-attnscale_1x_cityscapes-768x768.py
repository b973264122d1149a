"""UperNet with DeiT-S24 + AttnScale on Cityscapes, 1x (40k iterations).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/upernet_deit-s24-attnscale_1x_cityscapes-768x768.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_deit-s12-attnscale_1x_cityscapes-768x768.py'

model = dict(backbone=dict(num_layers=24, out_indices=(5, 11, 17, 23)))
