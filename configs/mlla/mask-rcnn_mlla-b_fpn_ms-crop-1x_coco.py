"""Mask R-CNN with MLLA-B on COCO, 1x (12 epochs, multi-scale with crops).
Authors' README: box AP 50.5, mask AP 45.0, 115M parameters, 502 GFLOPs.
    python tools/train.py configs/mlla/mask-rcnn_mlla-b_fpn_ms-crop-1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_mlla-t.py', '../_base_/settings/coco-instance_mlla-ms-crop-1x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/91c85c5a1061496d8796/?dl=1#/mlla_b.pth'
model = dict(backbone=dict(arch='base'), neck=dict(in_channels=[96, 192, 384, 768]))
