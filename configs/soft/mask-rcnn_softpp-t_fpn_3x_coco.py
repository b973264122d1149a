"""Mask R-CNN with SOFT++-Tiny on COCO, 3x (36 epochs, multi-scale). Paper: 32M parameters.
python tools/train.py configs/soft/mask-rcnn_softpp-t_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_softpp-t.py', '../_base_/settings/coco-instance_3x.py']
