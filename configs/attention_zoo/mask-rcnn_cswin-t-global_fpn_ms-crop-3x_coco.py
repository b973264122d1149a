"""Mask R-CNN with CSWin-T with softmax attention on COCO, 3x (36 epochs, multi-scale with crops, mixed precision).
ELFATT paper: box AP 48.8, mask AP 43.6, 40M parameters.
    python tools/train.py configs/attention_zoo/mask-rcnn_cswin-t-global_fpn_ms-crop-3x_coco.py \
        --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t.py', '../_base_/settings/coco-instance_swin-ms-crop-3x.py']
model = dict(backbone=dict(attention='global'))
