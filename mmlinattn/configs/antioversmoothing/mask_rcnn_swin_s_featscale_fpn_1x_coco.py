"""Mask R-CNN with Swin-S + FeatScale on COCO, 1x (12 epochs): the twin of
mask-rcnn_swin-s-featscale_fpn_1x_coco."""

from mmengine.config import read_base

with read_base():
    from .._base_.mask_rcnn_swin_t_fpn_1x_coco import *

pretrained = (
    'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/'
    'swin_small_patch4_window7_224.pth'
)
model.backbone.update(arch='small', feat_scale=True)
