"""RetinaNet with DeiT-S24 + FeatScale on COCO, 3x (36 epochs, multi-scale).
    python tools/train.py configs/antioversmoothing/retinanet_deit-s24-featscale_sfp_3x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/retinanet_deit-s24.py', '../_base_/settings/coco-detection_swin-3x.py']
model = dict(backbone=dict(feat_scale=True))
