"""Mask R-CNN with FLatten-CSWin-T on COCO, 1x (12 epochs).
ELFATT paper: box AP 46.6, mask AP 42.2, 41M parameters.
    python tools/train.py configs/attention_zoo/mask-rcnn_cswin-t-flatten_fpn_1x_coco.py
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t-flatten.py', '../_base_/settings/coco-instance_swin-1x.py']
