"""Mask R-CNN with DeiT-S12 + FeatScale on COCO, 1x (12 epochs).
python tools/train.py configs/antioversmoothing/mask-rcnn_deit-s12-featscale_sfp_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_deit-s12.py', '../_base_/settings/coco-instance_swin-1x.py']
pretrained = 'https://huggingface.co/peihaowang/vit-anti-oversmoothing/resolve/main/featscale_small_12.pth'
model = dict(backbone=dict(feat_scale=True))
