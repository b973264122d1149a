"""Mask R-CNN with RAVLT-T on COCO, 1x (12 epochs, mixed precision).
Authors' README: box AP 47.3, mask AP 42.7, 33M parameters, 219 GFLOPs.
    python tools/train.py configs/ravlt/mask-rcnn_ravlt-t_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_ravlt-t.py', '../_base_/settings/coco-instance_ravlt-1x.py']
