"""Mask R-CNN with SOFT++-Tiny on COCO, 1x (12 epochs): the twin of
mask-rcnn_softpp-t_fpn_1x_coco."""

from mmengine.config import read_base

with read_base():
    from .._base_.datasets.coco_instance import *
    from .._base_.det_runtime import *
    from .._base_.models.mask_rcnn_fpn import *
    from .._base_.schedules.coco_1x import *

from mmlinattn.models import SOFTPlusPlus

model.merge(
    dict(
        backbone=dict(
            type=SOFTPlusPlus,
            arch='tiny',
            drop_path_rate=0.1,
            norm_cfg=dict(type='SyncBN', requires_grad=True),
        ),
        neck=dict(in_channels=[64, 128, 256, 512]),
    )
)
