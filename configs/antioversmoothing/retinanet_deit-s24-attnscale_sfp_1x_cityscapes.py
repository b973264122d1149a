"""RetinaNet with DeiT-S24 + AttnScale on Cityscapes, 1x (8 epochs of 8 repetitions).
    python tools/train.py configs/antioversmoothing/retinanet_deit-s24-attnscale_sfp_1x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_deit-s24.py', '../_base_/settings/cityscapes-detection_swin-1x.py']
model = dict(backbone=dict(attn_scale=True), **_base_.cityscapes_model)
