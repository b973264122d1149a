"""Mask R-CNN with CSWin-T on COCO, 1x (12 epochs).
ELFATT paper: box AP 46.5, mask AP 42.1, 40M parameters.
    python tools/train.py configs/attention_zoo/mask-rcnn_cswin-t-local_fpn_1x_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_cswin-t.py', '../_base_/settings/coco-instance_swin-1x.py']
model = dict(backbone=dict(attention='local'))
