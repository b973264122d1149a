"""Mask R-CNN with VSSD-Micro on COCO, 1x (12 epochs).
Authors' README: box AP 45.4, mask AP 41.3, 33M parameters, 220 GFLOPs.
    python tools/train.py configs/vssd/mask-rcnn_vssd-micro_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_vssd-t.py', '../_base_/settings/coco-instance_swin-1x.py']
pretrained = 'https://huggingface.co/YuhengSSS/VSSD/resolve/main/vssd_micro_best.pth#/vssd_micro_best.pth'
model = dict(backbone=dict(arch='micro', drop_path_rate=0.1), neck=dict(in_channels=[48, 96, 192, 384]))
