"""Cascade Mask R-CNN with RAVLT-B on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
Authors' README: box AP 55.3, mask AP 47.7, 105M parameters, 851 GFLOPs.
    python tools/train.py configs/ravlt/cascade-mask-rcnn_ravlt-b_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/cascade-mask-rcnn_ravlt-s.py', '../_base_/settings/coco-instance_ravlt-ms-crop-3x.py']
pretrained = 'https://huggingface.co/aldjalkdf/RAVLT/resolve/main/RAVLT_B.pth#/RAVLT_B.pth'
model = dict(backbone=dict(arch='base', drop_path_rate=0.4), neck=dict(in_channels=[96, 192, 384, 512]))
