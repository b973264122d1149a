"""Mask R-CNN with RAVLT-B on COCO, 1x (12 epochs, mixed precision).
Authors' README: box AP 51.2, mask AP 45.7, 67M parameters, 372 GFLOPs.
    python tools/train.py configs/ravlt/mask-rcnn_ravlt-b_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_ravlt-t.py', '../_base_/settings/coco-instance_ravlt-1x.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_B.pth#/RAVLT_B.pth'
model = dict(backbone=dict(arch='base', drop_path_rate=0.4), neck=dict(in_channels=[96, 192, 384, 512]))
