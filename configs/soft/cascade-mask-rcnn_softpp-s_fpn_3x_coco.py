"""Cascade Mask R-CNN with SOFT++-Small on COCO, 3x (36 epochs, multi-scale).
python tools/train.py configs/soft/cascade-mask-rcnn_softpp-s_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/cascade-mask-rcnn_softpp-s.py', '../_base_/settings/coco-instance_3x.py']
