"""UperNet with DeiT-S24 + AttnScale on Cityscapes, 3x (120k iterations).
    python tools/train.py configs/antioversmoothing/upernet_deit-s24-attnscale_3x_cityscapes-768x768.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/upernet_deit-s24.py', '../_base_/settings/cityscapes-768x768_swin-3x.py']
model = dict(backbone=dict(attn_scale=True), **_base_.cityscapes_model)
