"""Mask R-CNN with SOFT++-Small on COCO, 1x (12 epochs). Paper: box AP 43.8, mask AP 40.1, 48M parameters.
python tools/train.py configs/soft/mask-rcnn_softpp-s_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_softpp-s.py', '../_base_/settings/coco-instance_1x.py']
