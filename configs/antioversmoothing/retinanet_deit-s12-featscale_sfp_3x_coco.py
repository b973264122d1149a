"""RetinaNet with DeiT-S12 + FeatScale on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/antioversmoothing/retinanet_deit-s12-featscale_sfp_3x_coco.py
"""

_base_ = ['../_base_/models/retinanet_deit-s12.py', '../_base_/settings/coco-detection_swin-3x.py']
pretrained = 'https://huggingface.co/peihaowang/vit-anti-oversmoothing/resolve/main/featscale_small_12.pth'
model = dict(backbone=dict(feat_scale=True))
