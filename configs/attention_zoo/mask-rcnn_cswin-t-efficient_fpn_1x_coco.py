"""Mask R-CNN with CSWin-T with efficient attention on COCO, 1x (12 epochs).

No result of a paper is quoted for it.

    python tools/train.py \
        configs/attention_zoo/mask-rcnn_cswin-t-efficient_fpn_1x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = './mask-rcnn_cswin-t-global_fpn_1x_coco.py'

model = dict(backbone=dict(attention='efficient'))
