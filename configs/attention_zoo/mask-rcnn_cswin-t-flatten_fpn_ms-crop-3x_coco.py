"""Mask R-CNN with FLatten-CSWin-T on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
ELFATT paper: box AP 48.9, mask AP 43.9, 41M parameters.
    python tools/train.py configs/attention_zoo/mask-rcnn_cswin-t-flatten_fpn_ms-crop-3x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t-flatten.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
