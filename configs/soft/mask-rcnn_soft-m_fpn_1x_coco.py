"""Mask R-CNN with SOFT-Medium (normalized) on COCO, 1x (12 epochs).
arXiv preprint of SOFT++: box AP 46.6, mask AP 42.0, 65M parameters.
    python tools/train.py configs/soft/mask-rcnn_soft-m_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_soft-m.py', '../_base_/settings/coco-instance_1x.py']
