"""Cascade Mask R-CNN with Swin-T-ELFATT on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
python tools/train.py configs/elfatt/cascade-mask-rcnn_swin-t-elfatt_fpn_ms-crop-3x_coco.py \
    --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/cascade-mask-rcnn_swin-t-elfatt.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
