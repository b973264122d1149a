"""Mask R-CNN with MAViT-S on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
python tools/train.py configs/mavit/mask-rcnn_mavit-s_fpn_ms-crop-3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_mavit-t.py', '../_base_/settings/coco-instance_ravlt-ms-crop-3x.py']
model = dict(backbone=dict(arch='small', drop_path_rate=0.15), neck=dict(in_channels=[64, 128, 320, 512]))
