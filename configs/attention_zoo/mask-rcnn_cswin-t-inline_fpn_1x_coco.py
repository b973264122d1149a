"""Mask R-CNN with InLine-CSWin-T on COCO, 1x (12 epochs).
python tools/train.py configs/attention_zoo/mask-rcnn_cswin-t-inline_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t.py', '../_base_/settings/coco-instance_swin-1x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/49fa2ecc543647c4b970/?dl=1#/inline_cswin_t.pth'
model = dict(backbone=dict(attention='inline'))
