"""Cascade Mask R-CNN with MAViT-S on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
python tools/train.py configs/mavit/cascade-mask-rcnn_mavit-s_fpn_ms-crop-3x_coco.py \
    --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/cascade-mask-rcnn_mavit-s.py', '../_base_/settings/coco-instance_ravlt-ms-crop-3x.py']
