"""Mask R-CNN with SOFT++-Medium on COCO, 1x (12 epochs). Paper: box AP 46.6, mask AP 42.0, 69M parameters.
python tools/train.py configs/soft/mask-rcnn_softpp-m_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_softpp-s.py', '../_base_/settings/coco-instance_1x.py']
model = dict(backbone=dict(arch='medium'))
