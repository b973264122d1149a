"""Mask R-CNN with InLine-Swin-T on COCO, 1x (12 epochs).
python tools/train.py configs/attention_zoo/mask-rcnn_swin-t-inline_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t.py', '../_base_/settings/coco-instance_swin-1x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/32810869fcc34410966b/?dl=1#/inline_swin_t.pth'
model = dict(backbone=dict(attention='inline'))
