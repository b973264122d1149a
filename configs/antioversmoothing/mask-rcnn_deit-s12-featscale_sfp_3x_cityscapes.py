"""Mask R-CNN with DeiT-S12 + FeatScale on Cityscapes, 3x (24 epochs of 8 repetitions).
python tools/train.py configs/antioversmoothing/mask-rcnn_deit-s12-featscale_sfp_3x_cityscapes.py
"""

_base_ = ['../_base_/models/mask-rcnn_deit-s12.py', '../_base_/settings/cityscapes-instance_swin-3x.py']
pretrained = 'https://huggingface.co/peihaowang/vit-anti-oversmoothing/resolve/main/featscale_small_12.pth'
model = dict(backbone=dict(feat_scale=True), **_base_.cityscapes_model)
