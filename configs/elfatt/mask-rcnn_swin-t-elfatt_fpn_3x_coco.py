"""Mask R-CNN with Swin-T-ELFATT on COCO, 3x (36 epochs, multi-scale).
The paper's 3x has crops and mixed precision too: ms-crop-3x.
    python tools/train.py configs/elfatt/mask-rcnn_swin-t-elfatt_fpn_3x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t.py', '../_base_/settings/coco-instance_swin-3x.py']
model = dict(backbone=dict(attention='elfatt'))
