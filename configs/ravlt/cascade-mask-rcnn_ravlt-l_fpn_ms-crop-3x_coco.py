"""Cascade Mask R-CNN with RAVLT-L on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
Authors' README: box AP 55.6, mask AP 48.0, 152M parameters, 979 GFLOPs.
    python tools/train.py configs/ravlt/cascade-mask-rcnn_ravlt-l_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/cascade-mask-rcnn_ravlt-s.py', '../_base_/settings/coco-instance_ravlt-ms-crop-3x.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_L.pth#/RAVLT_L.pth'
model = dict(backbone=dict(arch='large', drop_path_rate=0.55), neck=dict(in_channels=[96, 192, 448, 640]))
