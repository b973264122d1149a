"""Mask R-CNN with RAVLT-L on COCO, 1x (12 epochs, mixed precision).
Authors' README: box AP 52.3, mask AP 46.4, 114M parameters, 501 GFLOPs.
    python tools/train.py configs/ravlt/mask-rcnn_ravlt-l_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_ravlt-t.py', '../_base_/settings/coco-instance_ravlt-1x.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_L.pth#/RAVLT_L.pth'
model = dict(backbone=dict(arch='large', drop_path_rate=0.55), neck=dict(in_channels=[96, 192, 448, 640]))
