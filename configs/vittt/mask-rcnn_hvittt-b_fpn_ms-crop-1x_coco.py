"""Mask R-CNN with H-ViT^3-B on COCO, 1x (12 epochs, multi-scale with crops, mixed precision).
Authors' README: box AP 50.0, mask AP 44.6, 114M parameters, 510 GFLOPs.
    python tools/train.py configs/vittt/mask-rcnn_hvittt-b_fpn_ms-crop-1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_hvittt-t.py', '../_base_/settings/coco-instance_hvittt-ms-crop-1x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/1d0d7fb840254275b29d/?dl=1#/h_vittt_b.pth'
model = dict(backbone=dict(arch='base'), neck=dict(in_channels=[96, 192, 448, 640]))
