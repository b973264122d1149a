"""Mask R-CNN with VSSD-Micro on COCO, 3x (36 epochs, multi-scale with crops).
Authors' README: box AP 47.7, mask AP 42.8, 33M parameters, 220 GFLOPs.
    python tools/train.py configs/vssd/mask-rcnn_vssd-micro_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_vssd-t.py', '../_base_/settings/coco-instance_vssd-ms-crop-3x.py']
pretrained = 'https://huggingface.co/YuhengSSS/VSSD/resolve/main/vssd_micro_best.pth#/vssd_micro_best.pth'
model = dict(backbone=dict(arch='micro', drop_path_rate=0.1), neck=dict(in_channels=[48, 96, 192, 384]))
