"""Mask R-CNN with RAVLT-S on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
Authors' README: box AP 51.4, mask AP 45.5, 44M parameters, 262 GFLOPs.
    python tools/train.py configs/ravlt/mask-rcnn_ravlt-s_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_ravlt-t.py', '../_base_/settings/coco-instance_ravlt-ms-crop-3x.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_S.pth#/RAVLT_S.pth'
model = dict(backbone=dict(arch='small', drop_path_rate=0.15), neck=dict(in_channels=[64, 128, 320, 512]))
