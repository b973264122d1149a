"""Mask R-CNN with linear SOFT++-Large on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/soft/mask-rcnn_softpp-l-linear_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_softpp-l-linear.py', '../_base_/settings/coco-instance_3x.py']
