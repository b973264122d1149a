"""Mask R-CNN with Agent-Swin-T on COCO, 1x (12 epochs): the twin of
mask-rcnn_swin-t-agent_fpn_1x_coco."""

from mmengine.config import read_base

with read_base():
    from .._base_.mask_rcnn_swin_t_fpn_1x_coco import *

model.backbone.update(attention='agent', dense_agents=True)
