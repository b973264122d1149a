"""Mask R-CNN with DeiT-S12 + AttnScale on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/antioversmoothing/mask-rcnn_deit-s12-attnscale_sfp_1x_cityscapes.py
"""

_base_ = ['../_base_/models/mask-rcnn_deit-s12.py', '../_base_/settings/cityscapes-instance_swin-1x.py']
pretrained = 'https://huggingface.co/peihaowang/vit-anti-oversmoothing/resolve/main/attnscale_small_12.pth'
model = dict(backbone=dict(attn_scale=True), **_base_.cityscapes_model)
