"""Mask R-CNN with Swin-S + AttnScale on COCO, 1x (12 epochs).
python tools/train.py configs/antioversmoothing/mask-rcnn_swin-s-attnscale_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-s.py', '../_base_/settings/coco-instance_swin-1x.py']
model = dict(backbone=dict(attn_scale=True))
