"""Mask R-CNN with InLine-Swin-T on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
python tools/train.py configs/attention_zoo/mask-rcnn_swin-t-inline_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/32810869fcc34410966b/?dl=1#/inline_swin_t.pth'
model = dict(backbone=dict(attention='inline'))
