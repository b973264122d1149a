"""Mask R-CNN with MAViT-L on COCO, 1x (12 epochs, mixed precision).
python tools/train.py configs/mavit/mask-rcnn_mavit-l_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_mavit-t.py', '../_base_/settings/coco-instance_ravlt-1x.py']
model = dict(backbone=dict(arch='large', drop_path_rate=0.55), neck=dict(in_channels=[96, 192, 448, 640]))
