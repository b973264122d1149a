"""Mask R-CNN with VSSD-S on COCO, 3x (36 epochs, multi-scale with crops).
Authors' README: box AP 50.0, mask AP 44.6, 59M parameters, 325 GFLOPs.
    python tools/train.py configs/vssd/mask-rcnn_vssd-s_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_vssd-t.py', '../_base_/settings/coco-instance_vssd-ms-crop-3x.py']
pretrained = 'https://huggingface.co/YuhengSSS/VSSD/resolve/main/vssd_small_best_ema.pth#/vssd_small_best_ema.pth'
model = dict(backbone=dict(arch='small', drop_path_rate=0.4))
