"""Mask R-CNN with MAViT-B on COCO, 1x (12 epochs, mixed precision).
python tools/train.py configs/mavit/mask-rcnn_mavit-b_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_mavit-t.py', '../_base_/settings/coco-instance_ravlt-1x.py']
model = dict(backbone=dict(arch='base', drop_path_rate=0.4), neck=dict(in_channels=[96, 192, 384, 512]))
