"""Mask R-CNN with SOFT-Tiny (normalized) on COCO, 1x (12 epochs).
arXiv preprint of SOFT++: box AP 41.2, mask AP 38.2, 33M parameters.
    python tools/train.py configs/soft/mask-rcnn_soft-t_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_soft-t.py', '../_base_/settings/coco-instance_1x.py']
