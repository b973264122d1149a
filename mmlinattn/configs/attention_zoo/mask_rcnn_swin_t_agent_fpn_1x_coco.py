"""Mask R-CNN with Agent-Swin-T on COCO, 1x (12 epochs): the twin of
mask-rcnn_swin-t-agent_fpn_1x_coco."""

from mmengine.config import read_base

with read_base():
    from .._base_.datasets.coco_instance import *
    from .._base_.det_runtime import *
    from .._base_.models.mask_rcnn_fpn import *
    from .._base_.schedules.coco_swin_1x import *

from mmlinattn.models import SwinTransformer

pretrained = (
    'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/'
    'swin_tiny_patch4_window7_224.pth'
)
model.merge(
    dict(
        backbone=dict(
            type=SwinTransformer,
            arch='tiny',
            drop_path_rate=0.2,
            attention='agent',
            dense_agents=True,
        ),
        neck=dict(in_channels=[96, 192, 384, 768]),
    )
)
