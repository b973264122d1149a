"""Mask R-CNN with Pola-Swin-T on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
python tools/train.py configs/attention_zoo/mask-rcnn_swin-t-polaformer_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
model = dict(backbone=dict(attention='polaformer'))
