"""Mask R-CNN with CSWin-T with efficient attention on COCO, 1x (12 epochs).
ELFATT paper: box AP 46.1, mask AP 41.9, 40M parameters.
    python tools/train.py configs/attention_zoo/mask-rcnn_cswin-t-efficient_fpn_1x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t.py', '../_base_/settings/coco-instance_swin-1x.py']
model = dict(backbone=dict(attention='efficient'))
