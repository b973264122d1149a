"""Mask R-CNN with VSSD-T on COCO, 1x (12 epochs).
Authors' README: box AP 46.9, mask AP 42.6, 44M parameters, 265 GFLOPs.
    python tools/train.py configs/vssd/mask-rcnn_vssd-t_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_vssd-t.py', '../_base_/settings/coco-instance_swin-1x.py']
