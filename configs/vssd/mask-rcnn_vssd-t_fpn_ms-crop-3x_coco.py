"""Mask R-CNN with VSSD-T on COCO, 3x (36 epochs, multi-scale with crops).
Authors' README: box AP 48.8, mask AP 43.6, 44M parameters, 265 GFLOPs.
    python tools/train.py configs/vssd/mask-rcnn_vssd-t_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_vssd-t.py', '../_base_/settings/coco-instance_vssd-ms-crop-3x.py']
