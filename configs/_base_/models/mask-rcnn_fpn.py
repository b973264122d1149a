"""Mask R-CNN with FPN. Still to be given: backbone and neck.in_channels."""

_base_ = 'mmdet::_base_/models/mask-rcnn_r50_fpn.py'
pretrained = None
model = dict(backbone=dict(_delete_=True))
