"""Mask R-CNN with CSWin-T with efficient attention on Cityscapes, 1x (8 epochs of 8 repetitions).
python tools/train.py configs/attention_zoo/mask-rcnn_cswin-t-efficient_fpn_1x_cityscapes.py \
    --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t.py', '../_base_/settings/cityscapes-instance_swin-1x.py']
model = dict(backbone=dict(attention='efficient'), **_base_.cityscapes_model)
