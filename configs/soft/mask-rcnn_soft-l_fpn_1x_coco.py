"""Mask R-CNN with SOFT-Large (normalized) on COCO, 1x (12 epochs).
arXiv preprint of SOFT++: box AP 47.0, mask AP 42.2, 84M parameters.
    python tools/train.py configs/soft/mask-rcnn_soft-l_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_soft-t.py', '../_base_/settings/coco-instance_1x.py']
model = dict(backbone=dict(arch='large'))
