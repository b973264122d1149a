"""Mask R-CNN with VSSD-S on COCO, 1x (12 epochs).
Authors' README: box AP 48.4, mask AP 43.5, 59M parameters, 325 GFLOPs.
    python tools/train.py configs/vssd/mask-rcnn_vssd-s_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_vssd-t.py', '../_base_/settings/coco-instance_swin-1x.py']
pretrained = 'https://huggingface.co/YuhengSSS/VSSD/resolve/main/vssd_small_best_ema.pth#/vssd_small_best_ema.pth'
model = dict(backbone=dict(arch='small', drop_path_rate=0.4))
