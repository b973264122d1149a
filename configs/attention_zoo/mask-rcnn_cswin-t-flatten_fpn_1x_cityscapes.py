"""Mask R-CNN with FLatten-CSWin-T on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/attention_zoo/mask-rcnn_cswin-t-flatten_fpn_1x_cityscapes.py
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t-flatten.py', '../_base_/settings/cityscapes-instance_swin-1x.py']
model = _base_.cityscapes_model
