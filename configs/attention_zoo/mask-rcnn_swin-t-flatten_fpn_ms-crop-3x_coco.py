"""Mask R-CNN with FLatten-Swin-T on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
ELFATT paper: box AP 46.5, mask AP 42.1, 49M parameters.
    python tools/train.py configs/attention_zoo/mask-rcnn_swin-t-flatten_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t-flatten.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
