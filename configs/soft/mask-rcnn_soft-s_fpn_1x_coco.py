"""Mask R-CNN with SOFT-Small (normalized) on COCO, 1x (12 epochs).
arXiv preprint of SOFT++: box AP 43.8, mask AP 40.1, 44M parameters.
    python tools/train.py configs/soft/mask-rcnn_soft-s_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_soft-t.py', '../_base_/settings/coco-instance_1x.py']
model = dict(backbone=dict(arch='small'))
