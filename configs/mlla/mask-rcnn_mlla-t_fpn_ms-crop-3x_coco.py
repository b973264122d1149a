"""Mask R-CNN with MLLA-T on COCO, 3x (36 epochs, multi-scale with crops).
Authors' README: box AP 48.8, mask AP 43.8, 44M parameters, 255 GFLOPs.
    python tools/train.py configs/mlla/mask-rcnn_mlla-t_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_mlla-t.py', '../_base_/settings/coco-instance_mlla-ms-crop-3x.py']
model = dict(backbone=dict(drop_path_rate=0.3))
