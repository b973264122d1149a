"""Mask R-CNN with Swin-T-ELFATT on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
Paper: box AP 48.5, mask AP 43.6, 50M parameters.
    python tools/train.py configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_ms-crop-3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
model = dict(backbone=dict(attention='elfatt'))
