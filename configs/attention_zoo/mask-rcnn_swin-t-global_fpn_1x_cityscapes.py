"""Mask R-CNN with Swin-T with softmax attention on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/attention_zoo/mask-rcnn_swin-t-global_fpn_1x_cityscapes.py \
    --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_swin-t.py', '../_base_/settings/cityscapes-instance_swin-1x.py']
model = dict(backbone=dict(attention='global'), **_base_.cityscapes_model)
