"""UperNet with DeiT-S24 + AttnScale on ADE20K, 3x (480k iterations).

No figure in the paper: it trains on ImageNet only.

    python tools/train.py \
        configs/antioversmoothing/upernet_deit-s24-attnscale_3x_ade20k-512x512.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './upernet_deit-s12-attnscale_3x_ade20k-512x512.py'

model = dict(backbone=dict(num_layers=24, out_indices=(5, 11, 17, 23)))
