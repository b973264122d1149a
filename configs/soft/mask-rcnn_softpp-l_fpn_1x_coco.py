"""Mask R-CNN with SOFT++-Large on COCO, 1x (12 epochs). Paper: box AP 47.0, mask AP 42.2, 106M parameters.
python tools/train.py configs/soft/mask-rcnn_softpp-l_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_softpp-l.py', '../_base_/settings/coco-instance_1x.py']
