"""Mask R-CNN with Pola-Swin-T on COCO, 1x (12 epochs).
python tools/train.py configs/attention_zoo/mask-rcnn_swin-t-polaformer_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t.py', '../_base_/settings/coco-instance_swin-1x.py']
model = dict(backbone=dict(attention='polaformer'))
