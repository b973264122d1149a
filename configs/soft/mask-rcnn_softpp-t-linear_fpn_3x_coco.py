"""Mask R-CNN with linear SOFT++-Tiny on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/soft/mask-rcnn_softpp-t-linear_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_softpp-t-linear.py', '../_base_/settings/coco-instance_3x.py']
