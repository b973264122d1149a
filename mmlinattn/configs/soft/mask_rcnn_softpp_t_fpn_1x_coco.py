"""Mask R-CNN with SOFT++-Tiny on COCO, 1x (12 epochs): the twin of
mask-rcnn_softpp-t_fpn_1x_coco."""

from mmengine.config import read_base

with read_base():
    from .._base_.mask_rcnn_fpn_1x_coco import *

from mmlinattn.models import SOFTPlusPlus

model.backbone = dict(
    type=SOFTPlusPlus,
    arch='tiny',
    drop_path_rate=0.1,
    norm_cfg=dict(type='SyncBN', requires_grad=True),
)
model.neck.in_channels = [64, 128, 256, 512]
