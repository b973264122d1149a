"""Mask R-CNN with DeiT-S12 + FeatScale on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/antioversmoothing/mask-rcnn_deit-s12-featscale_sfp_3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_deit-s12.py', '../_base_/settings/coco-instance_swin-3x.py']
pretrained = 'https://huggingface.co/peihaowang/vit-anti-oversmoothing/resolve/main/featscale_small_12.pth'
model = dict(backbone=dict(feat_scale=True))
