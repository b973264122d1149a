"""Mask R-CNN with Agent-Swin-T on COCO, 1x (12 epochs): the twin of
mask-rcnn_swin-t-agent_fpn_1x_coco."""

from mmengine.config import read_base

with read_base():
    from .._base_.mask_rcnn_swin_t_fpn_1x_coco import *

pretrained = (
    'https://cloud.tsinghua.edu.cn/f/a2ddc1190c224f768a41/?dl=1#/agent_swin_t.pth'
)
model.backbone.update(attention='agent', dense_agents=True)
