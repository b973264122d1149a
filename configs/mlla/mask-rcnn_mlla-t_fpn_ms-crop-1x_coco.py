"""Mask R-CNN with MLLA-T on COCO, 1x (12 epochs, multi-scale with crops).
Authors' README: box AP 46.8, mask AP 42.1, 44M parameters, 255 GFLOPs.
    python tools/train.py configs/mlla/mask-rcnn_mlla-t_fpn_ms-crop-1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_mlla-t.py', '../_base_/settings/coco-instance_mlla-ms-crop-1x.py']
