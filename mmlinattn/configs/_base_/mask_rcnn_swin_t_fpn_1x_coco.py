"""Mask R-CNN with Swin-T on COCO, as Swin and VMamba train detectors."""

from mmengine.config import read_base

with read_base():
    from .mask_rcnn_fpn_1x_coco import *

from mmlinattn.models import SwinTransformer

optim_wrapper.optimizer.weight_decay = 0.05
param_scheduler[0].end = 1000
pretrained = (
    'https://github.com/SwinTransformer/storage/releases/download/v1.0.0/'
    'swin_tiny_patch4_window7_224.pth'
)
model.backbone = dict(type=SwinTransformer, arch='tiny', drop_path_rate=0.2)
model.neck.in_channels = [96, 192, 384, 768]
