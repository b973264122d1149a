"""Mask R-CNN with SOFT-Small (normalized) on COCO, 1 epoch.
arXiv preprint of SOFT++, Table 10: box AP 30.30.
WEIGHTS are those of soft-s-norm_in1k.
    python tools/train.py configs/soft/mask-rcnn_soft-s_fpn_1e_coco.py --cfg-options pretrained=WEIGHTS
"""

_base_ = ['../_base_/models/mask-rcnn_soft-t.py', '../_base_/settings/coco-instance_1e.py']
model = dict(backbone=dict(arch='small'))
