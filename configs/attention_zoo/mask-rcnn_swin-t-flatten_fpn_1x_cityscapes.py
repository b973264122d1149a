"""Mask R-CNN with FLatten-Swin-T on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/attention_zoo/mask-rcnn_swin-t-flatten_fpn_1x_cityscapes.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t-flatten.py', '../_base_/settings/cityscapes-instance_swin-1x.py']
model = _base_.cityscapes_model
