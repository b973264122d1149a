"""Mask R-CNN with FLatten-Swin-T on COCO, 1x (12 epochs).
ELFATT paper: box AP 44.2, mask AP 40.2, 49M parameters.
    python tools/train.py configs/attention_zoo/mask-rcnn_swin-t-flatten_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t-flatten.py', '../_base_/settings/coco-instance_swin-1x.py']
