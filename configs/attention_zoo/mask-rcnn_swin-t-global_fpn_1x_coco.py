"""Mask R-CNN with Swin-T with softmax attention on COCO, 1x (12 epochs).
ELFATT paper: box AP 45.4, mask AP 41.6, 48M parameters.
    python tools/train.py configs/attention_zoo/mask-rcnn_swin-t-global_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t.py', '../_base_/settings/coco-instance_swin-1x.py']
model = dict(backbone=dict(attention='global'))
