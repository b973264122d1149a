"""Mask R-CNN with H-ViT^3-S on COCO, 1x (12 epochs, multi-scale with crops, mixed precision).
Authors' README: box AP 49.1, mask AP 44.1, 74.0M parameters, 349 GFLOPs.
    python tools/train.py configs/vittt/mask-rcnn_hvittt-s_fpn_ms-crop-1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_hvittt-t.py', '../_base_/settings/coco-instance_hvittt-ms-crop-1x.py']
pretrained = 'https://cloud.tsinghua.edu.cn/f/3eeab8621a7f43929a87/?dl=1#/h_vittt_s.pth'
model = dict(backbone=dict(arch='small'))
