"""Cascade Mask R-CNN with RAVLT-S on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
Authors' README: box AP 54.2, mask AP 46.8, 82M parameters, 741 GFLOPs.
    python tools/train.py configs/ravlt/cascade-mask-rcnn_ravlt-s_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/cascade-mask-rcnn_ravlt-s.py', '../_base_/settings/coco-instance_ravlt-ms-crop-3x.py']
