"""RetinaNet with DeiT-S24 + FeatScale on Cityscapes, 3x (24 epochs of 8 repetitions).
    python tools/train.py configs/antioversmoothing/retinanet_deit-s24-featscale_sfp_3x_cityscapes.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_deit-s24.py', '../_base_/settings/cityscapes-detection_swin-3x.py']
model = dict(backbone=dict(feat_scale=True), **_base_.cityscapes_model)
